/* The assert handler of test programs: a failed assertion fails the test that runs. */
#include "support.h"

#include "base/assert.h"

void gw_assert_failed(const char *condition, const char *file, int line)
{
    _assert_true(0, condition, file, line);
    abort();
}
