"""What lets a command take `section.key=value`: help out of the field descriptions."""

from __future__ import annotations

from typing import Any

import click


class Setting(click.Option):
    """An option that is short for a setting; its help is the setting's description, looked up when it is shown."""

    def __init__(self, *args: Any, setting: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.setting = setting

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from ..config import settings

        field = dict(settings())[self.setting]
        self.help = f"Short for {self.setting}=... {field.description}"
        return super().get_help_record(ctx)


class WithSettings(click.Command):
    """A command whose help ends with the settings of its section."""

    section = "judge"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse; where an option is not there but a setting is called so, say how that one is written."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            from ..config import settings

            key = error.option_name.lstrip("-").replace("-", "_")
            found = [name for name, _ in settings() if key in (name, name.partition(".")[2])]
            if not found:
                raise
            own = next((name for name in found if name.startswith(f"{self.section}.")), found[0])
            raise click.UsageError(f"there is no option {error.option_name}; the setting is {own}=...", ctx) from None

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from ..config import expected, settings, toml_value

        with formatter.section(f"Settings, as {self.section}.key=value or under [{self.section}] in a TOML file"):
            formatter.write_dl(
                [
                    (f"{name}={toml_value(field.default)}", f"{field.description} [{expected_here}]")
                    for name, field in settings(self.section)
                    for expected_here in [expected(field.annotation, field.metadata)]
                ],
                col_max=28,
            )
