/*
 * Fuzz targets in the ordinary test run.
 *
 * A target is a file with LLVMFuzzerTestOneInput(), in libFuzzer's form, and `gw_test_target`.
 * Linked with libFuzzer, the file is a fuzzer; here it is linked with replay.c, whose main()
 * replays the committed corpus and then a fixed number of mutants of it, the same in every run.
 */
#ifndef GW_TESTS_REPLAY_H
#define GW_TESTS_REPLAY_H

#include <stddef.h>
#include <stdint.h>

/* The target; returns 0, and fails an assertion when a property does not hold. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct gw_test_target {
    const char *corpus; /* folder in tests/fuzz/corpus */
    uint64_t seed;
    uint32_t rounds; /* mutants */
    /* Asserts how far the inputs got: a target that reaches nothing tests nothing. */
    void (*check_reached)(void);
};

extern const struct gw_test_target gw_test_target;

/* The steps of a run, byte by byte; 0 behind the end. */
struct gw_test_steps {
    const uint8_t *data;
    size_t left;
};

static inline uint8_t gw_test_step(struct gw_test_steps *steps)
{
    if (steps->left == 0)
        return 0;
    steps->left--;
    return *steps->data++;
}

#endif
