from benchmarks.entry import run

if __name__ == "__main__":
    run("benchmarks.testbed", "tasks", "pretrain", "measure", "temperature", "caricature", "shapes")
