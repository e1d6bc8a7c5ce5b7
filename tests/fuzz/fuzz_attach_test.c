/*
 * Fuzz target: the decoder of the attach protocol on any datagram.
 *
 * Property: nothing is read outside the datagram, and what is accepted encodes to the same bytes.
 */
#include "fuzz/replay.h"
#include "support.h"

#include "base/assert.h"
#include "wire/attach.h"

/* Inputs that passed, by step. */
static uint32_t accepted[GW_ATTACH_STEPS];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gw_attach_msg msg;
    uint8_t again[GW_ATTACH_SIZE];
    /* A copy of exactly this size, so that the sanitizer sees a read beyond it. */
    uint8_t *bytes = malloc(size + (size == 0));
    GW_ASSERT(bytes != NULL);
    memcpy(bytes, data, size);
    if (gw_attach_decode(bytes, (uint32_t)size, &msg) == 0) {
        gw_attach_encode(&msg, again);
        GW_ASSERT(memcmp(again, bytes, GW_ATTACH_SIGNED) == 0);
        accepted[msg.step]++;
    }
    free(bytes);
    return 0;
}

#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION

enum {
    ROUNDS = 200000,
};

static void attach__survives_mutants(void **state)
{
    (void)state;
    gw_test_replay("attach", 1, ROUNDS, LLVMFuzzerTestOneInput);
    for (int step = 0; step < GW_ATTACH_STEPS; step++)
        assert_in_range(accepted[step], ROUNDS / 1000, ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(attach__survives_mutants)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
