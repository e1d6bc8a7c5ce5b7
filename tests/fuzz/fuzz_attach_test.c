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

enum {
    ROUNDS = 200000,
};

static void check_reached(void)
{
    for (int step = 0; step < GW_ATTACH_STEPS; step++)
        assert_in_range(accepted[step], ROUNDS / 1000, ROUNDS);
}

const struct gw_test_target gw_test_target = {
    .corpus = "attach",
    .seed = 1,
    .rounds = ROUNDS,
    .check_reached = check_reached,
};
