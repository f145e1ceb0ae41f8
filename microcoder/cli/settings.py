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
