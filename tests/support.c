/* The assert handler of test programs: a failed assertion fails the test that runs; and memory. */
#include "support.h"

#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#include "base/align.h"
#include "base/assert.h"

enum {
    KEPT_BYTES = 32 << 20, /* the most that malloc() can be told */
};

void gw_assert_failed(const char *condition, const char *file, int line)
{
    _assert_true(0, condition, file, line);
    abort();
}

/*
 * Freed memory stays in the process: many tests make and free the same large objects thousands of
 * times, and the kernel would clear every page of them again.
 */
__attribute__((constructor)) static void keep_memory(void)
{
    mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
    mallopt(M_TRIM_THRESHOLD, 2 * KEPT_BYTES);
}

void *gw_test_take(size_t size)
{
    void *memory = aligned_alloc(GW_CACHE_LINE, gw_aligned(size ? size : 1));
    assert_non_null(memory);
    return memory;
}

size_t gw_test_resident_bytes(void)
{
    size_t size, pages;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%zu %zu", &size, &pages) != 2)
        abort();
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}
