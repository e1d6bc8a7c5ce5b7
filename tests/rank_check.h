/* What tests of the public library run as the ranks of a job, and how such a rank checks. */
#ifndef GW_TESTS_RANK_CHECK_H
#define GW_TESTS_RANK_CHECK_H

#include <stdio.h>

#include "gradwire.h"

/* What a rank does with its open job; 0 is success. */
typedef int rank_fn(gradwire *job, int rank);

/* In a rank: a failed check is one line and the value 1. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "rank %d, line %d: %s (%s)\n", rank, __LINE__, #condition,             \
                    gradwire_last_error());                                                        \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

#endif
