/* The assert handler of test programs: a failed assertion fails the test that runs; and memory. */
#include "support.h"

#include "base/align.h"
#include "base/assert.h"

void gw_assert_failed(const char *condition, const char *file, int line)
{
    _assert_true(0, condition, file, line);
    abort();
}

void *gw_test_take(size_t size)
{
    void *memory = aligned_alloc(GW_CACHE_LINE, gw_aligned(size ? size : 1));
    assert_non_null(memory);
    return memory;
}
