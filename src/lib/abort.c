/* What a failed assertion of the core does to the process that uses the library. */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

void gw_assert_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "gradwire: %s:%d: assertion failed: %s\n", file, line, condition);
    abort();
}
