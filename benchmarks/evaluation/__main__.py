from benchmarks.entry import run

if __name__ == "__main__":
    run("benchmarks.evaluation", "kill", "references", "generate", "score", "seeds")
