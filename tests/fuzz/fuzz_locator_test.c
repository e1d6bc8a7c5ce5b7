/*
 * Fuzz target: the locator of a rank, as any registrar might send it.
 *
 * Property: what is read is an address that packets can go to, and is written as the same bytes.
 */
#include "fuzz/replay.h"
#include "support.h"

#include "base/assert.h"
#include "net/locator.h"

static uint32_t read_v4, read_v6, refused;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gw_sock_addr addr;
    uint8_t bytes[GW_LOCATOR_SIZE] = {0}, again[GW_LOCATOR_SIZE];
    memcpy(bytes, data, size < sizeof(bytes) ? size : sizeof(bytes));
    if (!gw_locator_read(bytes, &addr)) {
        refused++;
        return 0;
    }
    bool is_v6 = gw_sock_addr_is_v6(&addr);
    GW_ASSERT(is_v6 || addr.storage.ss_family == AF_INET);
    GW_ASSERT(gw_sock_addr_port(&addr) != 0);
    gw_locator_write(&addr, again);
    GW_ASSERT(memcmp(again, bytes, sizeof(bytes)) == 0);
    read_v4 += !is_v6;
    read_v6 += is_v6;
    return 0;
}

enum {
    ROUNDS = 200000,
};

static void check_reached(void)
{
    assert_in_range(read_v4, ROUNDS / 1000, ROUNDS);
    assert_in_range(read_v6, ROUNDS / 1000, ROUNDS);
    assert_in_range(refused, ROUNDS / 1000, ROUNDS);
}

const struct gw_test_target gw_test_target = {
    .corpus = "locator",
    .seed = 1,
    .rounds = ROUNDS,
    .check_reached = check_reached,
};
