"""The folders of the project, for tests that read all of them. As a program it prints those of compiler and runtime."""

PRODUCT = ("codegen", "files", "ir", "kernels", "lang", "passes", "runtime", "tools")
FOLDERS = (*PRODUCT, "bench", "docs", "examples", "tests")

if __name__ == "__main__":
    print(*PRODUCT)
