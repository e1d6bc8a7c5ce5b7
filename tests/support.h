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
 * 1, and n with a sanitizer, which sees what a run does and not what it finds, and takes five times
 * as long: of many runs that are alike it looks at every n-th.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GW_TEST_EVERY(n) (n)
#else
#define GW_TEST_EVERY(n) 1
#endif

/*
 * Memory for an object of the core: whole cache lines that begin on one, contents undefined. The
 * caller frees it. Fails the test when there is none.
 */
void *gw_test_take(size_t size);

/* Bytes of this process that the system has given pages for; ends it if nobody says how many. */
size_t gw_test_resident_bytes(void);

#endif
