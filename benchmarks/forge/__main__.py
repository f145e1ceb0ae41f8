from benchmarks.entry import run

if __name__ == "__main__":
    run("benchmarks.forge", "livecodebench", "leetcode", "mbpp", "packages", "weak", "speed")
