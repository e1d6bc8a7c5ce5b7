/* What every test program includes: cmocka with the headers that it needs, and memory. */
#ifndef GW_TESTS_SUPPORT_H
#define GW_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GW_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/*
 * Memory for an object of the core: whole cache lines that begin on one, contents undefined. The
 * caller frees it. Fails the test when there is none.
 */
void *gw_test_take(size_t size);

#endif
