/*
 * Fuzz target: the header of requests and answers of pushes and pulls, as any rank might send it.
 *
 * Property: what is read is a value that can be, and is written as the same bytes.
 */
#include "fuzz/replay.h"
#include "support.h"

#include "base/assert.h"
#include "core/ranks/store_impl.h"

static uint32_t accepted[GW_DTYPES], refused;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gw_store_message message = {.header = {0}}, again;
    struct gw_store_header header;
    size_t bytes = size < sizeof(message) ? size : sizeof(message);
    memcpy(&message, data, bytes);
    if (!gw_store_read(&message, bytes, &header)) {
        refused++;
        return 0;
    }
    GW_ASSERT(bytes >= GW_STORE_HEADER_SIZE && !gw_store_read(&message, 1025, &header));
    GW_ASSERT(header.shape.count >= 1 && gw_value_bytes(&header.shape) <= GW_MESH_BYTES_MAX);
    gw_store_write(&again, &header);
    GW_ASSERT(memcmp(&again, &message, GW_STORE_HEADER_SIZE) == 0);
    accepted[header.shape.type]++;
    return 0;
}

enum {
    ROUNDS = 200000,
};

static void check_reached(void)
{
    for (int type = 0; type < GW_DTYPES; type++)
        assert_in_range(accepted[type], ROUNDS / 1000, ROUNDS);
    assert_in_range(refused, ROUNDS / 1000, ROUNDS);
}

const struct gw_test_target gw_test_target = {
    .corpus = "store",
    .seed = 1,
    .rounds = ROUNDS,
    .check_reached = check_reached,
};
