/*
 * Fuzz target: a registrar whose ranks come, go and say anything at any time, by well-formed
 * messages of arbitrary contents.
 *
 * The input is a program of small steps. Properties: no crash, no assertion, no memory but its own;
 * present are those who have come and have not gone; a job that runs has ended when somebody was
 * lost; all flows end when everybody answers.
 */
#include "fuzz/posted.h"
#include "fuzz/replay.h"
#include "host.h"
#include "support.h"

#include "base/assert.h"
#include "core/ranks/mesh_wire.h"
#include "core/ranks/registrar.h"

enum {
    WORLD = 3,
    ADDRESSES = 6, /* that somebody may have, from 1 on */
    POLLS_MAX = 10000,
};

static struct {
    uint32_t collected, ran, ended, refused, words;
} reached;

struct fuzz {
    struct gw_test_host host;
    struct gw_registrar *registrar;
    struct gw_test_steps steps;
    gw_time now;
};

static void open_fuzz(struct fuzz *f, struct gw_transport *transport, bool is_bare)
{
    struct gw_endpoint_cfg cfg = gw_test_host_cfg(99, 1000);
    cfg.tx_flows_max = gw_registrar_flows(WORLD);
    cfg.rx_flows_max = 64;
    cfg.expect_max = gw_registrar_awaits(WORLD);
    gw_test_host_open(&f->host, &cfg, 4);
    if (is_bare)
        f->host.pool.bufs = NULL;
    f->registrar =
        gw_registrar_init(gw_test_take(gw_registrar_size(WORLD)), &(struct gw_registrar_cfg){
                                                                      .endpoint = f->host.endpoint,
                                                                      .job = 1,
                                                                      .world = WORLD,
                                                                      .is_bare = is_bare,
                                                                      .transport = transport,
                                                                  });
}

static void take_events(struct fuzz *f)
{
    struct gw_event event;
    while (gw_endpoint_poll(f->host.endpoint, &event, 1))
        gw_registrar_event(f->registrar, &event, f->now);
}

/* Somebody says something. */
static void say(struct fuzz *f)
{
    static const uint32_t tags[] = {GW_MESH_TAG_TABLE, GW_MESH_TAG_FAILURE, GW_MESH_TAG_BYE,
                                    GW_MESH_TAG_BARE, GW_MESH_TAG_MESSAGE};
    uint8_t what = gw_test_step(&f->steps), size = gw_test_step(&f->steps);
    uint32_t tag = tags[what % GW_COUNT_OF(tags)];
    if (tag == GW_MESH_TAG_BARE)
        tag += (uint32_t)gw_test_step(&f->steps) << 18 | (uint32_t)gw_test_step(&f->steps) << 10 |
               gw_test_step(&f->steps);
    uint64_t bytes = size & 1 ? GW_MESH_FAILURE_SIZE : size & 2 ? 1 : size;
    reached.words +=
        gw_test_deliver(f->host.endpoint, 1 + what / 8 % ADDRESSES, tag, bytes, &f->steps);
}

/* Of those who come to addresses from 1 on, or from 2 on, in the order of ranks. */
static uint32_t table_of(uint8_t who)
{
    struct gw_rank_place places[WORLD] = {{.address = 0}};
    for (uint32_t rank = 0; rank < WORLD; rank++)
        places[rank].address = 1 + rank + (who >= 192);
    return gw_ranks_table_sum(places, WORLD);
}

static void step(struct fuzz *f)
{
    uint8_t what = gw_test_step(&f->steps), who = gw_test_step(&f->steps);
    struct gw_registrar_rank rank = {
        .place = {.address = who / 8 % (ADDRESSES + 1)},
        .rank = who % (WORLD + 1),
        .notice = what / 8 % 8 ? 0 : GW_NOTICE_FORMULA + 15,
        .was_seated = what & 64,
        .table = what & 128 ? table_of(who) : 0,
        .path =
            {.brtt = GW_US, .brtt_max = GW_US, .rate_bps = 1000000000, .bdp = 10000, .mtu = 1000},
    };
    switch (what % 8) {
    case 0:
    case 1: {
        uint32_t present = gw_registrar_present(f->registrar);
        enum gw_job_reason reason = gw_registrar_come(f->registrar, &rank, f->now);
        GW_ASSERT(reason == GW_JOB_OK || reason == GW_JOB_RANK || reason == GW_JOB_NOTICE ||
                  reason == GW_JOB_LOST);
        GW_ASSERT(reason == GW_JOB_OK || gw_registrar_present(f->registrar) <= present);
        reached.refused += reason != GW_JOB_OK;
        break;
    }
    case 2:
        gw_registrar_gone(f->registrar, rank.place.address, f->now);
        break;
    case 3:
    case 4:
        say(f);
        break;
    case 5:
    case 6:
        gw_test_end_flow(f->host.endpoint, who % 8, what & 8 || who & 128, f->now);
        break;
    default: /* of another's flow: words of ranks come to the memory that waits for them alone */
        gw_registrar_event(f->registrar,
                           &(struct gw_event){
                               .kind = (enum gw_event_kind)(who % 8),
                               .flow = who / 8,
                               .peer = what / 8,
                               .tag = who / 64 ? GW_MESH_TAG_MESSAGE : GW_MESH_TAG_TABLE,
                           },
                           f->now);
    }
    f->now += GW_US;
    take_events(f);
    GW_ASSERT(gw_registrar_present(f->registrar) <= WORLD);
    reached.collected += gw_registrar_phase(f->registrar) == GW_REGISTRAR_COLLECTING;
    reached.ran += gw_registrar_phase(f->registrar) == GW_REGISTRAR_RUNNING;
    reached.ended += gw_registrar_phase(f->registrar) == GW_REGISTRAR_ENDED;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct gw_transport transport;
    struct fuzz f = {.steps = {data, size}};
    if (!transport.lb)
        transport = gw_test_transport("smartt", "spray", "timeout");
    open_fuzz(&f, &transport, size && data[0] & 1);
    while (f.steps.left)
        step(&f);
    for (uint32_t i = 0; gw_test_end_flow(f.host.endpoint, 0, true, f.now); i++) {
        GW_ASSERT(i < POLLS_MAX);
        take_events(&f);
    }
    GW_ASSERT(!gw_registrar_is_busy(f.registrar));
    gw_registrar_fini(f.registrar);
    f.host.pool.bufs = &f.host.bufs;
    gw_endpoint_fini(f.host.endpoint);
    gw_test_host_close(&f.host);
    free(f.registrar);
    return 0;
}

enum {
    ROUNDS = 100000,
};

static void check_reached(void)
{
    print_message("collecting %u, running %u, ended %u, refused %u, words %u\n", reached.collected,
                  reached.ran, reached.ended, reached.refused, reached.words);
    assert_true(reached.collected > ROUNDS && reached.ran > ROUNDS && reached.ended > ROUNDS);
    assert_true(reached.refused > ROUNDS && reached.words > ROUNDS / 2);
}

const struct gw_test_target gw_test_target = {
    .corpus = "registrar",
    .seed = 16,
    .rounds = ROUNDS,
    .check_reached = check_reached,
};
