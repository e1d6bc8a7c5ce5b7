/*
 * Micro benchmarks of the datapath: the tag of a packet that fills an Ethernet frame.
 */
#include "micro.h"

#include "base/assert.h"
#include "net/udp/tag.h"

enum {
    PKT = 1452, /* header and payload, of 1500 with IPv6 and UDP */
    HDR = 44,
};

struct tag_bench {
    struct gw_tag tx, rx;
    uint8_t bytes[PKT];
};

static void seal(struct tag_bench *b, uint8_t *tag)
{
    struct iovec pieces[] = {{b->bytes, HDR}, {b->bytes + HDR, PKT - HDR}};
    gw_tag_seal(&b->tx, pieces, 2, tag);
}

static void seal_run(void *state, uint64_t count)
{
    struct tag_bench *b = state;
    uint8_t tag[GW_TAG_SIZE];
    for (uint64_t i = 0; i < count; i++) {
        seal(b, tag);
        gw_bench_sink += tag[GW_TAG_SIZE - 1];
    }
}

static void seal_open_run(void *state, uint64_t count)
{
    struct tag_bench *b = state;
    struct iovec pieces[] = {{b->bytes, HDR}, {b->bytes + HDR, PKT - HDR}};
    uint8_t tag[GW_TAG_SIZE];
    for (uint64_t i = 0; i < count; i++) {
        seal(b, tag);
        enum gw_tag_verdict verdict = gw_tag_open(&b->rx, pieces, 2, tag);
        GW_ASSERT(verdict == GW_TAG_GENUINE);
    }
}

static void add_tag(struct gw_bench_suite *suite, const char *name, gw_bench_run *run)
{
    static const uint8_t session[GW_ATTACH_NONCE_SIZE];
    struct tag_bench *b = gw_bench_take(sizeof(*b));
    struct gw_key key;
    gw_key_from_text("", 0, &key);
    struct gw_tag_cfg cfg = {.key = &key, .session = session, .is_initiator = true};
    gw_tag_init(&b->tx, &cfg);
    cfg.is_initiator = false;
    gw_tag_init(&b->rx, &cfg);
    gw_bench_add(suite, name, run, b);
}

void gw_bench_add_net(struct gw_bench_suite *suite)
{
    int error = gw_key_setup();
    GW_ASSERT(error == 0);
    add_tag(suite, "tag, 1452 bytes: seal", seal_run);
    add_tag(suite, "tag, 1452 bytes: seal + open", seal_open_run);
}
