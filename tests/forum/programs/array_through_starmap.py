"""An ``Array`` of multiprocessing can be inherited by a process, and not be sent to one."""

import multiprocessing as mp


def add(shared, index):
    with shared.get_lock():
        shared[index] += 1


if __name__ == "__main__":
    totals = mp.Array("i", 4)
    with mp.Pool(2) as pool:
        pool.starmap(add, [(totals, index % 4) for index in range(8)])
    print("totals:", list(totals))
