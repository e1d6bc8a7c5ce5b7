/*
 * REPS: the rule by direct calls, and what it makes of a small fabric of parallel paths in which
 * flows with constant windows send, queues mark and overflow, and links die.
 */
#include "support.h"

#include "core/lb/lb.h"

enum {
    MTU = 4096,
    ENTROPIES = 256,
};

static struct gw_path path_with(uint32_t bdp)
{
    return (struct gw_path){.bdp = bdp, .mtu = MTU, .hdr = 64, .hops = 6};
}

struct balancer {
    const struct gw_lb_ops *ops;
    union gw_algo_cfg cfg;
    uint64_t state[GW_LB_STATE_MAX / 8];
};

static struct balancer balancer_make(const char *name, const char *preset, uint32_t bdp,
                                     uint64_t seed)
{
    struct balancer b = {.ops = (const void *)gw_registry_find(&gw_lb_registry, name)};
    struct gw_path path = path_with(bdp);
    gw_algo_defaults(&b.ops->algo, &b.cfg);
    if (preset)
        assert_int_equal(gw_algo_preset(&b.ops->algo, &b.cfg, preset), 0);
    b.ops->init(b.state, &b.cfg, &path, gw_prng_derive(seed, 1));
    return b;
}

static uint16_t pick(struct balancer *b)
{
    return b->ops->pick(b->state, &b->cfg, MTU, 0);
}

static void on_ack(struct balancer *b, uint16_t entropy, bool ce)
{
    b->ops->on_ack(b->state, &b->cfg, entropy, ce, 0);
}

/* The entropy that follows in the walk. */
static uint16_t after(uint16_t entropy)
{
    return (uint16_t)((entropy + 1) % ENTROPIES);
}

static void reps_pick__explores_one_bdp(void **state)
{
    (void)state;
    struct balancer b = balancer_make("reps", NULL, 20 * MTU, 1);
    uint16_t last = pick(&b);
    on_ack(&b, last, false); /* does not end the exploration */
    for (int i = 1; i < 20; i++) {
        uint16_t entropy = pick(&b);
        assert_int_equal(entropy, after(last));
        last = entropy;
    }
    on_ack(&b, 77, false);
    assert_int_equal(pick(&b), 77);
    assert_int_equal(pick(&b), 77);
}

static void reps_pick__stops_exploring_when_all_entropies_were_tried(void **state)
{
    (void)state;
    struct balancer b = balancer_make("reps", NULL, 10 * ENTROPIES * MTU, 1);
    bool seen[ENTROPIES] = {false};
    on_ack(&b, 77, false);
    for (int i = 0; i < ENTROPIES; i++) {
        uint16_t entropy = pick(&b);
        assert_false(seen[entropy]);
        seen[entropy] = true;
    }
    assert_int_equal(pick(&b), 77);
}

/* A bdp of two packets is gone before the first ACK: the walk goes on, it does not stand still. */
static void reps_pick__walks_until_the_first_feedback(void **state)
{
    (void)state;
    struct balancer b = balancer_make("reps", NULL, 2 * MTU, 1);
    uint16_t last = pick(&b);
    for (int i = 0; i < 600; i++) {
        uint16_t entropy = pick(&b);
        assert_int_equal(entropy, after(last));
        last = entropy;
    }
    on_ack(&b, 9, false);
    assert_int_equal(pick(&b), 9);
}

static void reps_init__starts_flows_at_different_entropies(void **state)
{
    (void)state;
    bool seen[ENTROPIES] = {false};
    uint32_t distinct = 0;
    for (uint64_t seed = 0; seed < 64; seed++) {
        struct balancer b = balancer_make("reps", NULL, 20 * MTU, seed);
        uint16_t entropy = pick(&b);
        distinct += !seen[entropy];
        seen[entropy] = true;
    }
    assert_true(distinct > 48); /* expected: 56.6 */
}

/* Figure 5a: a clean ACK is reused until the next feedback; a marked one takes the next entropy. */
static void reps_on_ack__recycles_clean_and_replaces_marked(void **state)
{
    (void)state;
    struct balancer b = balancer_make("reps", NULL, MTU, 1);
    uint16_t last = pick(&b);
    on_ack(&b, 3, false);
    assert_int_equal(pick(&b), 3);
    on_ack(&b, 5, false);
    assert_int_equal(pick(&b), 5);
    on_ack(&b, 5, true);
    assert_int_equal(pick(&b), after(last));
    assert_int_equal(pick(&b), after(last));
    b.ops->on_trim(b.state, &b.cfg, 3, 0);
    assert_int_equal(pick(&b), after(after(last)));
    b.ops->on_timeout(b.state, &b.cfg, 0);
    assert_int_equal(pick(&b), after(after(after(last))));
    on_ack(&b, 8, false);
    assert_int_equal(pick(&b), 8);
}

static void reps_on_ack__authors_draw_at_random_until_a_clean_ack(void **state)
{
    (void)state;
    struct balancer b = balancer_make("reps", "author", 8 * MTU, 1);
    uint16_t last = pick(&b);
    for (int i = 1; i < 10; i++) { /* 5/4 of the bdp */
        uint16_t entropy = pick(&b);
        assert_int_equal(entropy, after(last));
        last = entropy;
    }
    on_ack(&b, 3, false);
    assert_int_equal(pick(&b), 3);
    on_ack(&b, 3, true);
    bool seen[ENTROPIES] = {false};
    uint32_t distinct = 0;
    for (int i = 0; i < 1000; i++) {
        uint16_t entropy = pick(&b);
        distinct += !seen[entropy];
        seen[entropy] = true;
    }
    assert_true(distinct > 240); /* expected: 250.9 */
    on_ack(&b, 3, false);
    assert_int_equal(pick(&b), 3);
}

static void reps_on_ack__distrusts_an_entropy_that_was_never_sent(void **state)
{
    (void)state;
    struct balancer b = balancer_make("reps", NULL, MTU, 1);
    pick(&b);
    on_ack(&b, 40000, false);
    assert_in_range(pick(&b), 0, ENTROPIES - 1);
}

/* ---- A fabric of parallel paths, in ticks. ---- */

enum {
    PATHS_MAX = 8,
    FLOWS_MAX = 16,
    QUEUE = 60,   /* packets */
    DELAY = 20,   /* ticks from service to ACK: the base RTT */
    RTO = 45,     /* ticks */
    HORIZON = 64, /* ticks that the calendar reaches; above RTO */
    SLOT = 512,   /* feedback per tick */
};

enum outcome {
    CLEAN,
    MARKED,
    TRIMMED,
    TIMED_OUT,
};

struct feedback {
    uint16_t flow;
    uint16_t entropy;
    enum outcome outcome;
};

struct parallel {
    uint32_t rate; /* packets per tick */
    bool dead;     /* swallows what is sent */
    uint32_t head, count;
    struct feedback queue[QUEUE];
    uint32_t chosen; /* packets sent to it since the last reset */
};

struct fabric {
    struct parallel paths[PATHS_MAX];
    uint32_t path_count;
    struct balancer flows[FLOWS_MAX];
    uint32_t in_flight[FLOWS_MAX];
    uint32_t flow_count;
    uint32_t window; /* packets */
    struct feedback calendar[HORIZON][SLOT];
    uint32_t due[HORIZON];
    uint64_t tick;
    uint32_t dropped; /* by dead paths */
    uint32_t delivered;
    bool used[FLOWS_MAX][ENTROPIES]; /* since the last reset */
    struct gw_prng prng;
};

static uint32_t path_of(const struct fabric *f, uint16_t flow, uint16_t entropy)
{
    return (uint32_t)(gw_mix64(((uint64_t)flow << 16) | entropy) % f->path_count);
}

static void fabric_post(struct fabric *f, struct feedback feedback, uint32_t delay)
{
    uint32_t slot = (uint32_t)((f->tick + delay) % HORIZON);
    assert_true(f->due[slot] < SLOT);
    f->calendar[slot][f->due[slot]++] = feedback;
}

static void fabric_send(struct fabric *f, uint16_t flow)
{
    struct feedback pkt = {.flow = flow, .entropy = pick(&f->flows[flow])};
    struct parallel *path = &f->paths[path_of(f, flow, pkt.entropy)];
    path->chosen++;
    f->used[flow][pkt.entropy % ENTROPIES] = true;
    f->in_flight[flow]++;
    if (path->dead) {
        f->dropped++;
        pkt.outcome = TIMED_OUT;
        fabric_post(f, pkt, RTO);
    } else if (path->count == QUEUE) {
        pkt.outcome = TRIMMED;
        fabric_post(f, pkt, DELAY);
    } else {
        path->queue[(path->head + path->count++) % QUEUE] = pkt;
    }
}

/* Serves one packet; the chance of a mark rises from 0 to 1 between 20 and 80 % of the queue. */
static void path_serve(struct fabric *f, struct parallel *path)
{
    struct feedback pkt = path->queue[path->head];
    path->head = (path->head + 1) % QUEUE;
    path->count--;
    const uint32_t kmin = QUEUE / 5, kmax = QUEUE * 4 / 5;
    bool mark = path->count > kmin && gw_prng_below(&f->prng, kmax - kmin) < path->count - kmin;
    pkt.outcome = mark ? MARKED : CLEAN;
    f->delivered++;
    fabric_post(f, pkt, DELAY);
}

static void fabric_react(struct fabric *f, struct feedback pkt)
{
    struct balancer *b = &f->flows[pkt.flow];
    f->in_flight[pkt.flow]--;
    if (pkt.outcome == TRIMMED)
        b->ops->on_trim(b->state, &b->cfg, pkt.entropy, 0);
    else if (pkt.outcome == TIMED_OUT)
        b->ops->on_timeout(b->state, &b->cfg, 0);
    else
        on_ack(b, pkt.entropy, pkt.outcome == MARKED);
    while (f->in_flight[pkt.flow] < f->window)
        fabric_send(f, pkt.flow);
}

static void fabric_run(struct fabric *f, uint64_t ticks)
{
    for (uint64_t end = f->tick + ticks; f->tick < end; f->tick++) {
        uint32_t slot = (uint32_t)(f->tick % HORIZON);
        /* Reactions post into later slots only. */
        for (uint32_t i = 0; i < f->due[slot]; i++)
            fabric_react(f, f->calendar[slot][i]);
        f->due[slot] = 0;
        for (uint32_t p = 0; p < f->path_count; p++)
            for (uint32_t i = 0; i < f->paths[p].rate && f->paths[p].count > 0; i++)
                path_serve(f, &f->paths[p]);
    }
}

static void fabric_reset(struct fabric *f)
{
    f->delivered = f->dropped = 0;
    memset(f->used, 0, sizeof(f->used));
    for (uint32_t p = 0; p < f->path_count; p++)
        f->paths[p].chosen = 0;
}

static struct fabric *fabric_open(const char *lb, const char *preset, const uint32_t *rates,
                                  uint32_t path_count, uint32_t flow_count, uint32_t window,
                                  uint64_t seed)
{
    struct fabric *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    f->path_count = path_count;
    f->flow_count = flow_count;
    f->window = window;
    f->prng = gw_prng_derive(seed, 99);
    uint32_t bdp = 0;
    for (uint32_t p = 0; p < path_count; p++) {
        f->paths[p].rate = rates[p];
        bdp += rates[p] * DELAY * MTU / flow_count;
    }
    for (uint32_t i = 0; i < flow_count; i++)
        f->flows[i] = balancer_make(lb, preset, bdp, seed * 1000 + i);
    for (uint32_t i = 0; i < flow_count; i++)
        while (f->in_flight[i] < window)
            fabric_send(f, (uint16_t)i);
    return f;
}

/* P1: without congestion a flow recycles the entropies of its first bdp and no others. */
static void reps_fabric__keeps_its_entropies_without_congestion(void **state)
{
    static const uint32_t rates[] = {4, 4, 4, 4};
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct fabric *f = fabric_open("reps", NULL, rates, 4, 4, 16, seed);
        fabric_run(f, 5 * DELAY);
        fabric_reset(f);
        fabric_run(f, 5 * DELAY);
        struct fabric *later = malloc(sizeof(*later));
        assert_non_null(later);
        *later = *f;
        fabric_reset(later);
        fabric_run(later, 500 * DELAY);
        assert_memory_equal(later->used, f->used, sizeof(f->used));
        free(later);
        free(f);
    }
}

/*
 * P2: a dead path. Packets of one base RTT and its queueing are lost, then feedback from it stops
 * and only the entropies that timeouts try can hit it again: single packets, ever fewer. Spraying
 * goes on losing an eighth.
 */
static void reps_fabric__leaves_a_dead_path(void **state)
{
    static const uint32_t rates[] = {1, 1, 1, 1, 1, 1, 1, 1};
    static const struct {
        const char *lb, *preset;
    } balancers[] = {{"reps", NULL}, {"reps", "author"}, {"spray", NULL}};
    enum { RUN = 2000, WINDOW = 20, SEEDS = 10 };
    (void)state;
    uint32_t dropped[GW_COUNT_OF(balancers)] = {0}, late[GW_COUNT_OF(balancers)] = {0};
    for (size_t i = 0; i < GW_COUNT_OF(balancers); i++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            struct fabric *f =
                fabric_open(balancers[i].lb, balancers[i].preset, rates, 8, 8, WINDOW, seed);
            fabric_run(f, RUN);
            fabric_reset(f);
            f->paths[3].dead = true;
            fabric_run(f, DELAY + RTO);
            late[i] -= f->dropped;
            fabric_run(f, RUN);
            late[i] += f->dropped;
            dropped[i] += f->dropped;
            free(f);
        }
    print_message("lost: reps %u (%u later than RTT + RTO), author %u (%u), spray %u (%u)\n",
                  dropped[0], late[0], dropped[1], late[1], dropped[2], late[2]);
    for (size_t i = 0; i < 2; i++) {
        assert_true(dropped[i] <= SEEDS * 8 * WINDOW / 4); /* a quarter of the windows */
        assert_true(late[i] <= SEEDS * 3);
        assert_true(dropped[2] >= 10 * dropped[i]);
    }
}

/* P3 (Figure 7a): two paths of 1 and 2; the load follows the capacity, where spraying halves it. */
static void reps_fabric__loads_paths_by_capacity(void **state)
{
    static const uint32_t rates[] = {1, 2};
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++)
        for (int kind = 0; kind < 3; kind++) {
            const char *preset = kind == 1 ? "author" : NULL;
            struct fabric *f =
                fabric_open(kind == 2 ? "spray" : "reps", preset, rates, 2, 8, 12, seed);
            fabric_run(f, 2000);
            fabric_reset(f);
            fabric_run(f, 20000);
            double ratio = (double)f->paths[1].chosen / f->paths[0].chosen;
            double utilisation = f->delivered / (3.0 * 20000);
            if (kind == 2) {
                assert_true(ratio < 1.05);
                assert_true(utilisation < 0.75);
            } else {
                assert_true(ratio > 1.95 && ratio < 2.05);
                assert_true(utilisation > 0.99);
            }
            free(f);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reps_pick__explores_one_bdp),
        cmocka_unit_test(reps_pick__stops_exploring_when_all_entropies_were_tried),
        cmocka_unit_test(reps_pick__walks_until_the_first_feedback),
        cmocka_unit_test(reps_init__starts_flows_at_different_entropies),
        cmocka_unit_test(reps_on_ack__recycles_clean_and_replaces_marked),
        cmocka_unit_test(reps_on_ack__authors_draw_at_random_until_a_clean_ack),
        cmocka_unit_test(reps_on_ack__distrusts_an_entropy_that_was_never_sent),
        cmocka_unit_test(reps_fabric__keeps_its_entropies_without_congestion),
        cmocka_unit_test(reps_fabric__leaves_a_dead_path),
        cmocka_unit_test(reps_fabric__loads_paths_by_capacity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
