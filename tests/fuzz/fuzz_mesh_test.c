/*
 * Fuzz target: a rank of a job whose registrar and other ranks say anything at any time, by
 * well-formed messages of arbitrary contents, while it has messages, pushes and pulls of its own.
 *
 * The input is a program of small steps. Properties: no crash, no assertion, no memory but what was
 * agreed; a state never goes back; there is one last event; every call that was taken ends or is
 * dropped; nothing is left when it is over.
 */
#include "fuzz/posted.h"
#include "fuzz/replay.h"
#include "host.h"
#include "support.h"

#include "base/align.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/prng.h"
#include "core/ranks/mesh_wire.h"
#include "core/ranks/messages.h"
#include "core/ranks/store_impl.h"

enum {
    WORLD = 3,
    OWN = 1,        /* rank */
    REGISTRAR = 50, /* address; ranks have 1 to WORLD */
    LIMIT = 4,
    ROOM = 4096,          /* bytes of a call's data */
    MEMORY_MAX = 1 << 16, /* of values */
    TURNS_MAX = 10000,
};

#define STALL (20 * GW_US)

static struct {
    uint32_t met, failed, broken, left, moved, stored, refused, served;
} reached;

struct fuzz {
    struct gw_test_host host;
    struct gw_mesh *mesh;
    struct gw_messages *messages;
    struct gw_store *store;
    struct gw_test_steps steps;
    gw_time now;
    uint8_t data[2 * LIMIT][ROOM];
    uint32_t calls; /* in work */
    struct gw_test_budget budget;
    enum gw_mesh_state state;
    bool is_bare;
    bool is_over; /* the last event has come */
};

static void open_fuzz(struct fuzz *f, const struct gw_transport *transport)
{
    f->budget.limit = MEMORY_MAX;
    struct gw_endpoint_cfg cfg = gw_test_host_cfg(OWN + 1, 1000);
    cfg.tx_flows_max = gw_mesh_flows(WORLD) + LIMIT + gw_store_flows(WORLD, LIMIT);
    cfg.rx_flows_max = 64;
    cfg.expect_max = gw_mesh_awaits(WORLD) + LIMIT + gw_store_awaits(WORLD, LIMIT);
    gw_test_host_open(&f->host, &cfg, 4);
    if (f->is_bare)
        f->host.pool.bufs = NULL;
    struct gw_mesh_cfg mesh = {
        .endpoint = f->host.endpoint,
        .address = OWN + 1,
        .rank = OWN,
        .world = WORLD,
        .is_bare = f->is_bare,
        .transport = transport,
        .stall = STALL,
    };
    f->mesh = gw_mesh_init(gw_test_take(gw_mesh_size(WORLD)), &mesh, f->now);
    f->messages = gw_messages_init(gw_test_take(gw_messages_size(LIMIT)), LIMIT, f->mesh, STALL);
    struct gw_store_cfg store = {
        .mesh = f->mesh,
        .rank = OWN,
        .world = WORLD,
        .limit = LIMIT,
        .kernels = gw_kernels_best(0),
        .allocator = gw_test_budget_allocator(&f->budget),
    };
    f->store = gw_store_init(gw_test_take(gw_store_size(WORLD, LIMIT)), &store);
}

static void poll_calls(struct fuzz *f)
{
    struct gw_message_done message;
    struct gw_store_done done;
    while (gw_messages_poll(f->messages, &message)) {
        GW_ASSERT(f->calls-- > 0 && message.bytes <= ROOM);
        reached.moved++;
    }
    while (gw_store_poll(f->store, &done)) {
        GW_ASSERT(f->calls-- > 0 && done.refusal.why <= GW_REFUSED_NO_MEMORY);
        reached.stored += done.refusal.why == GW_REFUSED_NOT;
        reached.refused += done.refusal.why != GW_REFUSED_NOT;
    }
}

static void poll_mesh(struct fuzz *f)
{
    struct gw_mesh_event event;
    while (gw_mesh_poll(f->mesh, &event)) {
        GW_ASSERT(!f->is_over);
        if (event.kind == GW_MESH_EVENT_MET) {
            gw_store_serve(f->store);
            reached.met++;
        } else if (event.kind == GW_MESH_EVENT_WANTS) {
            GW_ASSERT(event.rank < WORLD && event.rank != OWN);
        } else {
            bool has_failed = event.kind == GW_MESH_EVENT_FAILED;
            GW_ASSERT(!has_failed || (event.reason && event.reason < GW_JOB_REASONS));
            GW_ASSERT(event.about <= WORLD && event.found_by <= WORLD);
            f->is_over = true;
            f->calls = 0;
            gw_messages_drop(f->messages);
            gw_store_drop(f->store);
            reached.failed += has_failed;
            reached.broken += has_failed && event.reason == GW_JOB_BROKEN;
            reached.left += !has_failed;
        }
    }
    GW_ASSERT(gw_mesh_state(f->mesh) >= f->state);
    GW_ASSERT((gw_mesh_state(f->mesh) == GW_MESH_OVER) == f->is_over);
    f->state = gw_mesh_state(f->mesh);
}

static void turn(struct fuzz *f)
{
    struct gw_event event;
    while (gw_endpoint_poll(f->host.endpoint, &event, 1))
        if (!gw_messages_event(f->messages, &event, f->now) &&
            !gw_store_event(f->store, &event, f->now))
            gw_mesh_event(f->mesh, &event, f->now);
    if (!gw_deadline_before(f->now, gw_mesh_deadline(f->mesh)))
        gw_mesh_expire(f->mesh, f->now);
    gw_messages_advance(f->messages, f->now);
    gw_store_advance(f->store, f->now);
    gw_messages_overdue(f->messages, f->now);
    poll_calls(f);
    poll_mesh(f);
}

/* The table, of which steps may change a byte. */
static void say_table(struct fuzz *f)
{
    struct gw_rank_place places[WORLD] = {{.address = 1}, {.address = 2}, {.address = 3}};
    uint8_t bytes[GW_RANKS_TABLE_ENTRY_SIZE * (WORLD + 1)];
    uint8_t at = gw_test_step(&f->steps), with = gw_test_step(&f->steps);
    gw_ranks_table_write(places, WORLD, 1, bytes);
    if (at < sizeof(bytes))
        bytes[at] = with;
    struct gw_test_steps table = {bytes, sizeof(bytes)};
    gw_test_deliver(f->host.endpoint, REGISTRAR, GW_MESH_TAG_TABLE, sizeof(bytes) - (at == 255),
                    &table);
}

/* A request or answer of the store, of which steps may change the rest. */
static void say_store(struct fuzz *f, uint32_t peer)
{
    static const uint8_t words[] = {
        GW_STORE_GO, GW_STORE_DONE, GW_STORE_PUSH, GW_STORE_PULL, 3, 4, 0, 77};
    struct gw_store_pair *pair = &f->store->pairs[peer - 1];
    uint8_t kind = gw_test_step(&f->steps), word = gw_test_step(&f->steps);
    uint8_t count = gw_test_step(&f->steps), key = gw_test_step(&f->steps);
    struct gw_store_header header = {
        .word = words[word % GW_COUNT_OF(words)],
        .key = pair->first && key & 1 ? pair->first->call.key : key / 64,
        .shape = {.count = count & 1 ? 1 + count : 0,
                  .type = (enum gw_dtype)(word / 8 % GW_DTYPES)},
    };
    if (count & 2)
        header.shape.count <<= count / 4;
    if (pair->first && key & 2)
        header.shape = pair->first->call.shape;
    struct gw_store_message message;
    memset(&message, 1, sizeof(message));
    gw_store_write(&message, &header);
    uint64_t size = GW_STORE_HEADER_SIZE;
    uint32_t numbers[GW_STORE_KINDS] = {pair->asked_number, pair->answers, pair->asked_number,
                                        pair->requests};
    uint64_t bytes = gw_value_bytes(&header.shape);
    bool is_raw = kind % GW_STORE_KINDS > GW_STORE_ANSWER;
    if (is_raw)
        size = key & 4 ? gw_value_bytes(&pair->task.shape) : bytes;
    else if (key & 8 && bytes <= GW_STORE_DATA_MAX)
        size += bytes;
    else if (key & 16)
        size = kind;
    struct gw_test_steps contents = {(const uint8_t *)&message, sizeof(message)};
    reached.served += gw_test_deliver(
        f->host.endpoint, peer, gw_store_tag(kind % GW_STORE_KINDS, numbers[kind % GW_STORE_KINDS]),
        size, &contents);
}

/* Anything else that a peer may say. */
static void say(struct fuzz *f, uint32_t peer)
{
    static const uint32_t tags[] = {GW_MESH_TAG_FAILURE, GW_MESH_TAG_BYE, GW_MESH_TAG_MESSAGE,
                                    GW_MESH_TAG_BARE, GW_MESH_TAG_TABLE};
    uint8_t what = gw_test_step(&f->steps), size = gw_test_step(&f->steps);
    uint32_t tag = tags[what % GW_COUNT_OF(tags)];
    if (tag == GW_MESH_TAG_MESSAGE)
        tag += what / 64;
    if (tag == GW_MESH_TAG_BARE)
        tag += (uint32_t)gw_test_step(&f->steps) << 18 | (uint32_t)gw_test_step(&f->steps) << 10 |
               gw_test_step(&f->steps);
    uint64_t bytes = what & 8 ? GW_MESH_FAILURE_SIZE : size;
    if (bytes)
        gw_test_deliver(f->host.endpoint, peer, tag, bytes, &f->steps);
}

static void start_message(struct fuzz *f, uint8_t who)
{
    uint32_t place = who / 16 % LIMIT;
    struct gw_message message = {
        .rank = who & 1 ? 0 : 2,
        .tag = place,
        .data = f->is_bare ? NULL : f->data[place],
        .bytes = 1 + 8 * (uint64_t)who,
        .is_receive = who & 2,
    };
    f->calls += !f->is_over && gw_messages_start(f->messages, &message, f->now) == GW_OK;
}

static void start_store(struct fuzz *f, uint8_t who)
{
    uint8_t what = gw_test_step(&f->steps);
    struct gw_store_call call = {
        .key = what / 64,
        .data = f->data[LIMIT + who % LIMIT],
        .shape = {.count = 1 + 2 * (uint64_t)who, .type = (enum gw_dtype)(what / 2 % GW_DTYPES)},
        .is_pull = what & 1,
    };
    if (!f->is_bare)
        f->calls += !f->is_over && gw_store_start(f->store, &call) == GW_OK;
}

static void change_ways(struct fuzz *f, uint8_t who)
{
    struct gw_path path = {
        .brtt = GW_US, .brtt_max = GW_US, .rate_bps = 1000000000, .bdp = 10000, .mtu = 1000};
    switch (who % 4) {
    case 0:
        gw_mesh_way_up(f->mesh, who / 4 % (WORLD + 1), who / 16 % (WORLD + 2), f->now);
        break;
    case 1:
        gw_mesh_way_down(f->mesh, who / 4 % WORLD, who & 128, f->now);
        break;
    case 2:
        gw_mesh_set_registrar(f->mesh, REGISTRAR + (who == 2), &path, f->now);
        break;
    default:
        gw_mesh_registrar_down(f->mesh, f->now);
    }
}

static void step(struct fuzz *f)
{
    static const struct gw_rank_place places[WORLD] = {
        {.address = 1}, {.address = 2}, {.address = 3}};
    uint8_t what = gw_test_step(&f->steps), who = gw_test_step(&f->steps);
    switch (what % 16) {
    case 0:
        say_table(f);
        break;
    case 1:
    case 2:
    case 3:
        say_store(f, who & 1 ? 1 : 3);
        break;
    case 4:
        say(f, who % 4 == 3 ? REGISTRAR : 1 + who % 4);
        break;
    case 5:
    case 6:
        start_message(f, who);
        break;
    case 7:
    case 8:
        start_store(f, who);
        break;
    case 9:
    case 10:
        change_ways(f, who);
        break;
    case 11:
        if (f->is_bare)
            gw_mesh_know(f->mesh, places, 0, f->now);
        break;
    case 12:
        if (who & 1)
            gw_mesh_leave(f->mesh, f->now);
        else if (who & 2)
            gw_mesh_fail(f->mesh, GW_JOB_STALLED, who / 4 % (WORLD + 1), f->now);
        break;
    default:
        gw_test_end_flow(f->host.endpoint, who % 8, who < 240, f->now);
    }
    f->now += GW_US;
    turn(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct gw_transport transport;
    struct fuzz *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    f->steps = (struct gw_test_steps){data, size};
    f->is_bare = gw_test_step(&f->steps) & 1;
    if (!transport.lb)
        transport = gw_test_transport("smartt", "spray", "timeout");
    open_fuzz(f, &transport);
    while (f->steps.left)
        step(f);
    gw_mesh_fail(f->mesh, GW_JOB_LOST, OWN, f->now);
    turn(f);
    for (uint32_t i = 0; gw_mesh_is_busy(f->mesh); i++) {
        GW_ASSERT(i < TURNS_MAX);
        gw_test_end_flow(f->host.endpoint, 0, true, f->now += GW_US);
        turn(f);
    }
    GW_ASSERT(f->calls == 0 && f->is_over);
    gw_store_fini(f->store);
    GW_ASSERT(f->budget.taken == 0);
    gw_mesh_fini(f->mesh);
    f->host.pool.bufs = &f->host.bufs;
    gw_endpoint_fini(f->host.endpoint);
    gw_test_host_close(&f->host);
    free(f->mesh);
    free(f->messages);
    free(f->store);
    free(f);
    return 0;
}

enum {
    ROUNDS = 60000,
};

static void check_reached(void)
{
    print_message("met %u, failed %u, broken %u, left %u, messages %u, stored %u, refused %u, "
                  "served %u\n",
                  reached.met, reached.failed, reached.broken, reached.left, reached.moved,
                  reached.stored, reached.refused, reached.served);
    assert_true(reached.met > ROUNDS / 5 && reached.failed > ROUNDS / 5);
    assert_true(reached.broken > ROUNDS / 50 && reached.left > ROUNDS / 50);
    assert_true(reached.moved > ROUNDS / 50 && reached.stored > ROUNDS / 50);
    assert_true(reached.refused > ROUNDS / 50 && reached.served > ROUNDS / 50);
}

const struct gw_test_target gw_test_target = {
    .corpus = "mesh",
    .seed = 16,
    .rounds = ROUNDS,
    .check_reached = check_reached,
};
