# Nothing heavy is imported here: torch's spawn runs this file again in each of its workers, and what it imports would
# be held against torch.
import sys

if __name__ == "__main__":
    from bench.run import main

    sys.exit(main())
