import sys

if __name__ == "__main__":
    from bench.command import main

    sys.exit(main())
