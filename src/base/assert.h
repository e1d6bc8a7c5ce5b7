/*
 * Assertions for code that must not know stdio.
 *
 * GW_ASSERT states a programming error, never bad input: bad input is counted and dropped, or
 * refused with an error code. A failed assertion calls gw_assert_failed(), which the program
 * provides; it must not return. Assertions stay on in release builds, so keep them cheap on hot
 * paths; GW_DEBUG_ASSERT is for the expensive ones and vanishes under NDEBUG.
 */
#ifndef GW_BASE_ASSERT_H
#define GW_BASE_ASSERT_H

_Noreturn void gw_assert_failed(const char *condition, const char *file, int line);

#define GW_ASSERT(condition)                                                                       \
    ((condition) ? (void)0 : gw_assert_failed(#condition, __FILE__, __LINE__))

#ifdef NDEBUG
#define GW_DEBUG_ASSERT(condition) ((void)sizeof(condition))
#else
#define GW_DEBUG_ASSERT(condition) GW_ASSERT(condition)
#endif

#endif
