def kernel(n):
    def helper():
        barrier()

    for tile in range(n):
        if tile + 1 < n:
            helper()
            helper()
        helper()
    while n:
        helper()
