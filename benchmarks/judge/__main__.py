from benchmarks.entry import run

if __name__ == "__main__":
    run("benchmarks.judge", "speed", "cost", "steady", "leniency", "references", "asserts", "languages", "ray")
