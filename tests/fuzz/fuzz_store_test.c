/*
 * Fuzz target: the header of requests and answers of pushes and pulls, as any rank might send it.
 *
 * Property: what is read is a value that can be, and is written as the same bytes.
 */
#include "fuzz/replay.h"
#include "support.h"

#include "base/assert.h"
#include "net/ranks/team_store_impl.h"

static uint32_t accepted[GW_DTYPE_SUMMABLE], refused;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gw_team_store_message message = {0}, again;
    struct gw_team_value_shape shape;
    uint64_t key;
    size_t bytes = size < sizeof(message) ? size : sizeof(message);
    memcpy(&message, data, bytes);
    if (!gw_team_store_read(&message, bytes, &key, &shape)) {
        refused++;
        return 0;
    }
    GW_ASSERT(bytes >= GW_TEAM_STORE_HEADER_SIZE);
    GW_ASSERT(shape.count >= 1 && gw_team_value_bytes(&shape) <= GW_TEAM_MESSAGE_MAX);
    gw_team_store_write(&again, message.word, key, &shape);
    GW_ASSERT(memcmp(&again, &message, GW_TEAM_STORE_HEADER_SIZE) == 0);
    accepted[shape.type]++;
    return 0;
}

enum {
    ROUNDS = 200000,
};

static void check_reached(void)
{
    for (int type = 0; type < GW_DTYPE_SUMMABLE; type++)
        assert_in_range(accepted[type], ROUNDS / 1000, ROUNDS);
    assert_in_range(refused, ROUNDS / 1000, ROUNDS);
}

const struct gw_test_target gw_test_target = {
    .corpus = "store",
    .seed = 1,
    .rounds = ROUNDS,
    .check_reached = check_reached,
};
