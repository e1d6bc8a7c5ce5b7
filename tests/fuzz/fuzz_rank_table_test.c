/*
 * Fuzz target: an entry of the table of ranks, or what is in place of the first, as any rank 0
 * might send it.
 *
 * Property: what is read is an address that packets can go to, and is written as the same bytes.
 */
#include "fuzz/replay.h"
#include "support.h"

#include "base/assert.h"
#include "core/notice.h"
#include "net/ranks/rank_table.h"

static uint32_t read_v4, read_v6, read_notice, refused;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gw_rank_table_entry entry;
    uint8_t bytes[GW_RANK_TABLE_ENTRY_SIZE] = {0}, again[GW_RANK_TABLE_ENTRY_SIZE];
    memcpy(bytes, data, size < sizeof(bytes) ? size : sizeof(bytes));
    uint8_t units;
    if (gw_rank_table_read_notice(bytes, &units)) {
        GW_ASSERT(units <= GW_NOTICE_UNITS_MAX);
        gw_rank_table_write_notice(units, again);
        GW_ASSERT(memcmp(again, bytes, sizeof(bytes)) == 0);
        read_notice++;
    }
    if (!gw_rank_table_read(bytes, &entry)) {
        refused++;
        return 0;
    }
    bool is_v6 = entry.addr.storage.ss_family == AF_INET6;
    GW_ASSERT(is_v6 || entry.addr.storage.ss_family == AF_INET);
    GW_ASSERT(entry.address != 0 && gw_sock_addr_port(&entry.addr) != 0);
    gw_rank_table_write(&entry, again);
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
    assert_in_range(read_notice, ROUNDS / 1000, ROUNDS);
    assert_in_range(refused, ROUNDS / 1000, ROUNDS);
}

const struct gw_test_target gw_test_target = {
    .corpus = "rank_table",
    .seed = 1,
    .rounds = ROUNDS,
    .check_reached = check_reached,
};
