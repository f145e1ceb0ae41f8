from benchmarks.entry import run

if __name__ == "__main__":
    run("benchmarks.training", "learning", "advise", "nano", "diversity", "scale", "turns", "kills")
