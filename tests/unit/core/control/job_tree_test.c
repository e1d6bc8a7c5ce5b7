/*
 * The tree of a job: placed by hand, placed as the simulator and the model place two levels, and
 * fed to the switches and the server that must understand it.
 */
#include "pool_fixture.h"
#include "support.h"

#include "base/cpu.h"
#include "base/prng.h"
#include "core/control/job_tree.h"
#include "core/switch/aggregate.h"

enum {
    SWITCHES_MAX = 12,
    LEVEL_NONE = GW_LEVELS_MAX - 1,
    ROOT = 1000,   /* addresses of switches; the root's is the first */
    ROUNDS = 3000, /* of random trees */
    PKTS = 256,
    JOB = 6,
    EPOCH = 2,
};

static const uint64_t seed = 8;

/* A worker's address: ranks and addresses have nothing in common. */
static uint32_t address_of(uint32_t rank)
{
    return 5000 - 3 * rank;
}

static struct gw_job_way way_of(uint32_t rank, uint8_t count, uint32_t a, uint32_t b, uint32_t c)
{
    return (struct gw_job_way){.worker = address_of(rank), .count = count, .switches = {a, b, c}};
}

static enum gw_job_reason make(struct gw_job_tree *tree, const struct gw_job_way *ways,
                               uint32_t world, uint32_t levels)
{
    size_t size = gw_job_tree_size(world);
    void *memory = gw_test_take(size);
    memset(memory, 0xaa, size);
    return gw_job_tree_make(tree, memory, ways, world, levels);
}

static void tree_free(struct gw_job_tree *tree)
{
    free(tree->places); /* the first piece of its memory */
}

static const struct gw_job_node *node_at(const struct gw_job_tree *tree, uint32_t address)
{
    for (uint32_t i = 0; i < tree->node_count; i++)
        if (tree->nodes[i].address == address)
            return &tree->nodes[i];
    return NULL;
}

static void expect_place(const struct gw_job_tree *tree, uint32_t rank, uint8_t level,
                         uint32_t bitmap, uint8_t above0, uint8_t above1)
{
    const struct gw_place *place = &tree->places[rank];
    assert_int_equal(place->address, address_of(rank));
    assert_int_equal(place->level, level);
    assert_int_equal(place->bitmap, bitmap);
    assert_int_equal(place->above[0], above0);
    assert_int_equal(place->above[1], above1);
}

static void expect_spot(const struct gw_job_tree *tree, uint32_t address, struct gw_job_spot spot)
{
    const struct gw_job_node *node = node_at(tree, address);
    assert_non_null(node);
    assert_int_equal(node->spot.level, spot.level);
    assert_int_equal(node->spot.fan_in, spot.fan_in);
    assert_memory_equal(node->spot.above, spot.above, sizeof(spot.above));
}

/* Ranks whose addresses are the members of a switch, in order. */
static void expect_members(const struct gw_job_tree *tree, uint32_t address, uint32_t count,
                           const uint32_t *ranks)
{
    const struct gw_job_node *node = node_at(tree, address);
    assert_non_null(node);
    assert_int_equal(node->member_count, count);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(tree->members[node->first_member + i], address_of(ranks[i]));
}

/* Workers behind its positions, in order. */
static void expect_workers(const struct gw_job_tree *tree, uint32_t address, uint32_t count,
                           const uint16_t *workers)
{
    const struct gw_job_node *node = node_at(tree, address);
    assert_non_null(node);
    assert_int_equal(node->member_count, count);
    assert_memory_equal(tree->workers + node->first_member, workers, count * sizeof(*workers));
}

static void tree__of_one_switch(void **state)
{
    (void)state;
    static const uint32_t ranks[] = {0, 1, 2};
    struct gw_job_way ways[3];
    struct gw_job_tree tree;
    for (uint32_t rank = 0; rank < 3; rank++)
        ways[rank] = way_of(rank, 1, ROOT, 0, 0);
    for (uint32_t levels = 1; levels <= GW_LEVELS_MAX; levels++) {
        assert_int_equal(make(&tree, ways, 3, levels), GW_JOB_OK);
        assert_true(tree.levels == 1 && tree.node_count == 1);
        for (uint32_t rank = 0; rank < 3; rank++)
            expect_place(&tree, rank, 0, 1u << rank, 0, 0);
        expect_spot(&tree, ROOT, (struct gw_job_spot){.fan_in = 3});
        expect_members(&tree, ROOT, 3, ranks);
        expect_workers(&tree, ROOT, 3, (const uint16_t[]){1, 1, 1});
        tree_free(&tree);
    }
}

static void tree__without_levels_tells_workers_apart_by_rank(void **state)
{
    (void)state;
    struct gw_job_way ways[70];
    struct gw_job_tree tree;
    for (uint32_t has_ways = 0; has_ways < 2; has_ways++) {
        for (uint32_t rank = 0; rank < 70; rank++)
            ways[rank] = way_of(rank, has_ways ? 1 + rank % 3 : 0, rank, rank, rank);
        /* Ways do not matter when no level is wanted; nor does what is wanted without ways. */
        assert_int_equal(make(&tree, ways, 70, has_ways ? 0 : 3), GW_JOB_OK);
        assert_true(tree.levels == 0 && tree.node_count == 0);
        expect_place(&tree, 0, 0, 1, 0, 0);
        expect_place(&tree, 31, 0, 1u << 31, 0, 0);
        expect_place(&tree, 69, 0, 1u << 5, 2, 0);
        tree_free(&tree);
    }
}

/* Ranks 0 and 3 in the first rack, 1 at the root, 2 and 4 in the second rack. */
static void two_levels(struct gw_job_way *ways)
{
    ways[0] = way_of(0, 2, 7, ROOT, 0);
    ways[1] = way_of(1, 1, ROOT, 0, 0);
    ways[2] = way_of(2, 2, 3, ROOT, 0);
    ways[3] = way_of(3, 2, 7, ROOT, 0);
    ways[4] = way_of(4, 2, 3, ROOT, 0);
}

static void tree__of_two_levels(void **state)
{
    (void)state;
    static const uint32_t of_root[] = {0, 2, 1}, of_first[] = {0, 3}, of_second[] = {2, 4};
    struct gw_job_way ways[5];
    struct gw_job_tree tree;
    two_levels(ways);
    for (uint32_t levels = 2; levels <= GW_LEVELS_MAX; levels++) {
        assert_int_equal(make(&tree, ways, 5, levels), GW_JOB_OK);
        assert_true(tree.levels == 2 && tree.node_count == 3);
        expect_place(&tree, 0, 0, 1, 0, 0);
        expect_place(&tree, 1, 1, 0, 2, 0);
        expect_place(&tree, 2, 0, 1, 1, 0);
        expect_place(&tree, 3, 0, 2, 0, 0);
        expect_place(&tree, 4, 0, 2, 1, 0);
        expect_spot(&tree, ROOT, (struct gw_job_spot){.level = 1, .fan_in = 3});
        expect_spot(&tree, 7, (struct gw_job_spot){.fan_in = 2, .above = {0}});
        expect_spot(&tree, 3, (struct gw_job_spot){.fan_in = 2, .above = {1}});
        expect_members(&tree, ROOT, 3, of_root);
        expect_members(&tree, 7, 2, of_first);
        expect_members(&tree, 3, 2, of_second);
        expect_workers(&tree, ROOT, 3, (const uint16_t[]){2, 2, 1});
        expect_workers(&tree, 7, 2, (const uint16_t[]){1, 1});
        expect_workers(&tree, 3, 2, (const uint16_t[]){1, 1});
        assert_int_equal(node_at(&tree, 7)->via, address_of(0));
        assert_int_equal(node_at(&tree, 3)->via, address_of(2));
        assert_int_equal(node_at(&tree, ROOT)->via, address_of(0));
        tree_free(&tree);
    }
}

static void tree__of_racks_that_add_up_for_themselves(void **state)
{
    (void)state;
    static const uint32_t of_root[] = {1, 0, 2}; /* the one that has a position, then the others */
    struct gw_job_way ways[5];
    struct gw_job_tree tree;
    two_levels(ways);
    assert_int_equal(make(&tree, ways, 5, 1), GW_JOB_OK);
    assert_int_equal(tree.levels, 2);
    expect_place(&tree, 0, 0, 1, 0, 0);
    expect_place(&tree, 1, 0, 1, 2, 0); /* the root's own worker is the third rack */
    expect_place(&tree, 4, 0, 2, 1, 0);
    expect_spot(&tree, ROOT, (struct gw_job_spot){.fan_in = 1, .above = {2}});
    expect_spot(&tree, 3, (struct gw_job_spot){.fan_in = 2, .above = {1}});
    expect_members(&tree, ROOT, 3, of_root);
    expect_workers(&tree, ROOT, 3, (const uint16_t[]){1, 0, 0}); /* it has one position */
    expect_workers(&tree, 7, 2, (const uint16_t[]){1, 1});
    tree_free(&tree);
    ways[1] = way_of(1, 2, 7, ROOT, 0);
    assert_int_equal(make(&tree, ways, 5, 1), GW_JOB_OK);
    expect_spot(&tree, ROOT, (struct gw_job_spot){.level = LEVEL_NONE, .fan_in = 1});
    tree_free(&tree);
}

/*
 *              ROOT            rank 4
 *            /  |   \
 *         10    11    12       ranks 6, 3 and 5
 *        /  \
 *      20    21                ranks 0 and 1, 2
 */
static void three_levels(struct gw_job_way *ways)
{
    ways[0] = way_of(0, 3, 20, 10, ROOT);
    ways[1] = way_of(1, 3, 20, 10, ROOT);
    ways[2] = way_of(2, 3, 21, 10, ROOT);
    ways[3] = way_of(3, 2, 11, ROOT, 0);
    ways[4] = way_of(4, 1, ROOT, 0, 0);
    ways[5] = way_of(5, 2, 12, ROOT, 0);
    ways[6] = way_of(6, 2, 10, ROOT, 0);
}

static void tree__of_three_levels_and_workers_at_each(void **state)
{
    (void)state;
    static const uint32_t of_root[] = {0, 3, 5, 4}, of_10[] = {0, 2, 6};
    struct gw_job_way ways[7];
    struct gw_job_tree tree;
    three_levels(ways);
    assert_int_equal(make(&tree, ways, 7, 3), GW_JOB_OK);
    assert_true(tree.levels == 3 && tree.node_count == 6);
    expect_place(&tree, 0, 0, 1, 0, 0);
    expect_place(&tree, 1, 0, 2, 0, 0);
    expect_place(&tree, 2, 0, 1, 1, 0);
    expect_place(&tree, 3, 1, 0, 0, 1);
    expect_place(&tree, 4, 2, 0, 0, 3);
    expect_place(&tree, 5, 1, 0, 0, 2);
    expect_place(&tree, 6, 1, 0, 2, 0);
    expect_spot(&tree, ROOT, (struct gw_job_spot){.level = 2, .fan_in = 4});
    expect_spot(&tree, 10, (struct gw_job_spot){.level = 1, .fan_in = 3, .above = {0, 0}});
    expect_spot(&tree, 11, (struct gw_job_spot){.level = 1, .fan_in = 1, .above = {0, 1}});
    expect_spot(&tree, 12, (struct gw_job_spot){.level = 1, .fan_in = 1, .above = {0, 2}});
    expect_spot(&tree, 20, (struct gw_job_spot){.fan_in = 2, .above = {0, 0}});
    expect_spot(&tree, 21, (struct gw_job_spot){.fan_in = 1, .above = {1, 0}});
    expect_members(&tree, ROOT, 4, of_root);
    expect_members(&tree, 10, 3, of_10);
    expect_workers(&tree, ROOT, 4, (const uint16_t[]){4, 1, 1, 1});
    expect_workers(&tree, 10, 3, (const uint16_t[]){2, 1, 1});
    expect_workers(&tree, 20, 2, (const uint16_t[]){1, 1});
    expect_workers(&tree, 21, 1, (const uint16_t[]){1});
    tree_free(&tree);
}

/* The second switch of a way is left out, for its own workers, too. */
static void tree__of_two_levels_where_there_are_three(void **state)
{
    (void)state;
    static const uint32_t of_root[] = {0, 2, 3, 5, 4, 6};
    struct gw_job_way ways[7];
    struct gw_job_tree tree;
    three_levels(ways);
    assert_int_equal(make(&tree, ways, 7, 2), GW_JOB_OK);
    assert_true(tree.levels == 2 && node_at(&tree, 10) == NULL);
    expect_place(&tree, 1, 0, 2, 0, 0);
    expect_place(&tree, 2, 0, 1, 1, 0);
    expect_place(&tree, 3, 0, 1, 2, 0);
    expect_place(&tree, 5, 0, 1, 3, 0);
    expect_place(&tree, 4, 1, 0, 4, 0);
    expect_place(&tree, 6, 1, 0, 5, 0);
    expect_spot(&tree, ROOT, (struct gw_job_spot){.level = 1, .fan_in = 6});
    expect_members(&tree, ROOT, 6, of_root);
    expect_workers(&tree, ROOT, 6, (const uint16_t[]){2, 1, 1, 1, 1, 1});
    tree_free(&tree);
}

static void tree__refuses_ways_that_make_none(void **state)
{
    (void)state;
    const struct {
        struct gw_job_way good, bad;
    } cases[] = {
        {way_of(0, 1, ROOT, 0, 0), way_of(1, 1, 9, 0, 0)},       /* two roots */
        {way_of(0, 2, 7, ROOT, 0), way_of(1, 2, 7, 9, 0)},       /* the same */
        {way_of(0, 2, 7, ROOT, 0), way_of(1, 1, 7, 0, 0)},       /* a root below another */
        {way_of(0, 1, ROOT, 0, 0), way_of(1, 2, ROOT, 7, 0)},    /* and the reverse */
        {way_of(0, 1, ROOT, 0, 0), way_of(1, 0, 0, 0, 0)},       /* none at all */
        {way_of(0, 2, 7, ROOT, 0), way_of(1, 3, 7, 8, ROOT)},    /* goes on differently */
        {way_of(0, 3, 7, 8, ROOT), way_of(1, 3, 8, 7, ROOT)},    /* upside down */
        {way_of(0, 3, 7, 8, ROOT), way_of(1, 3, 7, 9, ROOT)},    /* two ways up */
        {way_of(0, 1, ROOT, 0, 0), way_of(1, 2, ROOT, ROOT, 0)}, /* a loop */
        {way_of(0, 1, ROOT, 0, 0), way_of(1, 3, 7, 7, ROOT)},    /* another */
        {way_of(0, 1, ROOT, 0, 0), way_of(1, 3, ROOT, 7, ROOT)}, /* and another */
    };
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        const struct gw_job_way ways[] = {cases[i].good, cases[i].bad};
        struct gw_job_tree tree;
        print_message("case %zu\n", i);
        assert_int_equal(make(&tree, ways, 2, 3), GW_JOB_PATH);
        assert_int_equal(tree.about, 1);
        tree_free(&tree);
    }
}

static void tree__has_32_positions_below_a_switch(void **state)
{
    (void)state;
    struct gw_job_way ways[33];
    struct gw_job_tree tree;
    /* Workers only; switches only; one more switch; one more worker. */
    for (uint32_t shape = 0; shape < 3; shape++)
        for (uint32_t extra = 0; extra < 2; extra++)
            for (uint32_t levels = 1; levels <= GW_LEVELS_MAX; levels++) {
                for (uint32_t rank = 0; rank < 33; rank++)
                    ways[rank] = shape == 1 || (shape == 2 && rank % 2)
                                     ? way_of(rank, 2, rank, ROOT, 0)
                                     : way_of(rank, 1, ROOT, 0, 0);
                enum gw_job_reason reason = make(&tree, ways, 32 + extra, levels);
                assert_int_equal(reason, extra ? GW_JOB_TREE : GW_JOB_OK);
                if (extra)
                    assert_int_equal(tree.about, ROOT);
                tree_free(&tree);
            }
}

/* The largest job: 32 racks of 32 workers. */
static void tree__of_1024_workers(void **state)
{
    (void)state;
    static struct gw_job_way ways[GW_WORLD_MAX];
    struct gw_job_tree tree;
    for (uint32_t levels = 1; levels <= GW_LEVELS_MAX; levels++) {
        for (uint32_t rank = 0; rank < GW_WORLD_MAX; rank++)
            ways[rank] = way_of(rank, 2, rank % 32, ROOT, 0);
        assert_int_equal(make(&tree, ways, GW_WORLD_MAX, levels), GW_JOB_OK);
        assert_int_equal(tree.node_count, 33);
        for (uint32_t rank = 0; rank < GW_WORLD_MAX; rank++)
            expect_place(&tree, rank, 0, 1u << rank / 32, rank % 32, 0);
        expect_spot(&tree, ROOT,
                    (struct gw_job_spot){.level = levels == 1 ? LEVEL_NONE : 1,
                                         .fan_in = levels == 1 ? 1 : 32});
        uint16_t workers[32] = {1};
        for (uint32_t rack = 0; rack < 32 && levels > 1; rack++)
            workers[rack] = 32;
        expect_workers(&tree, ROOT, 32, workers);
        tree_free(&tree);
    }
}

/* As many switches as ways can name: refused, and nothing is overrun (the sanitizer sees it). */
static void tree__of_ways_that_share_only_the_root(void **state)
{
    (void)state;
    static struct gw_job_way ways[GW_WORLD_MAX];
    struct gw_job_tree tree;
    for (uint32_t rank = 0; rank < GW_WORLD_MAX; rank++)
        ways[rank] = way_of(rank, 3, 2 * rank, 2 * rank + 1, 100000);
    assert_int_equal(make(&tree, ways, GW_WORLD_MAX, 3), GW_JOB_TREE);
    assert_int_equal(tree.node_count, 2 * GW_WORLD_MAX + 1);
    tree_free(&tree);
}

/*
 * Two levels, placed as the simulator does it: racks are numbered as ranks come to them, the root's
 * own workers are behind the racks, or when racks add up for themselves, one more rack.
 */
static void expect_as_simulated(const struct gw_job_tree *tree, const uint32_t *homes,
                                uint32_t world, bool is_rack_scale)
{
    uint32_t racks[SWITCHES_MAX], sizes[SWITCHES_MAX] = {0}, rack_count = 0, own = 0;
    uint32_t firsts[32], owns[32], own_count = 0;
    struct gw_place places[32] = {0};
    for (uint32_t rank = 0; rank < world; rank++) {
        uint32_t rack = 0;
        while (rack < rack_count && racks[rack] != homes[rank])
            rack++;
        if (homes[rank] == ROOT) {
            owns[own_count++] = rank;
            continue;
        }
        if (rack == rack_count) {
            firsts[rack_count] = rank;
            racks[rack_count++] = homes[rank];
        }
        places[rank] = (struct gw_place){.bitmap = 1u << sizes[rack]++, .above = {(uint8_t)rack}};
    }
    bool is_rack = rack_count == 0 || is_rack_scale;
    for (uint32_t rank = 0; rank < world; rank++)
        if (homes[rank] == ROOT) {
            places[rank].level = !is_rack;
            places[rank].bitmap = is_rack ? 1u << own : 0;
            places[rank].above[0] = (uint8_t)(rack_count + (is_rack ? 0 : own));
            own++;
        }
    assert_int_equal(tree->levels, rack_count ? 2 : 1);
    for (uint32_t rank = 0; rank < world; rank++)
        expect_place(tree, rank, places[rank].level, places[rank].bitmap, places[rank].above[0], 0);
    for (uint32_t rack = 0; rack < rack_count; rack++)
        expect_spot(tree, racks[rack],
                    (struct gw_job_spot){.fan_in = (uint8_t)sizes[rack], .above = {(uint8_t)rack}});
    struct gw_job_spot root = {.level = 1, .fan_in = (uint8_t)(rack_count + own_count)};
    if (is_rack && own)
        root = (struct gw_job_spot){.fan_in = (uint8_t)own, .above = {(uint8_t)rack_count}};
    else if (is_rack)
        root = (struct gw_job_spot){.level = LEVEL_NONE, .fan_in = 1};
    expect_spot(tree, ROOT, root);
    /* Whoever has a position comes first. */
    uint32_t members[64];
    memcpy(members + (is_rack ? own_count : 0), firsts, rack_count * sizeof(*firsts));
    memcpy(members + (is_rack ? 0 : rack_count), owns, own_count * sizeof(*owns));
    expect_members(tree, ROOT, rack_count + own_count, members);
}

static void tree__is_the_simulators(void **state)
{
    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed);
    struct gw_prng prng = gw_prng_derive(seed, 0);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct gw_job_way ways[32];
        struct gw_job_tree tree;
        uint32_t homes[32], world = 1 + gw_prng_below(&prng, 32);
        uint32_t switches = 1 + gw_prng_below(&prng, SWITCHES_MAX - 1);
        uint32_t levels = 1 + gw_prng_below(&prng, 3);
        for (uint32_t rank = 0; rank < world; rank++) {
            homes[rank] = ROOT + gw_prng_below(&prng, switches);
            ways[rank] = homes[rank] == ROOT ? way_of(rank, 1, ROOT, 0, 0)
                                             : way_of(rank, 2, homes[rank], ROOT, 0);
        }
        assert_int_equal(make(&tree, ways, world, levels), GW_JOB_OK);
        expect_as_simulated(&tree, homes, world, levels == 1);
        tree_free(&tree);
    }
}

/* A network of real aggregation stages, one per switch, whether or not the job's tree has it. */
struct network {
    struct gw_job_way ways[32];
    uint32_t world;
    uint32_t switch_count;
    struct gw_aggregate *stages[SWITCHES_MAX]; /* of switch ROOT + i */
    struct gw_pkt_pool pool;
    uint32_t results[32]; /* copies of the result, by rank */
};

static void network_open(struct network *n, struct gw_prng *prng)
{
    uint32_t next[SWITCHES_MAX] = {0}, depth[SWITCHES_MAX] = {0};
    *n = (struct network){.world = 1 + gw_prng_below(prng, 32),
                          .switch_count = 1 + gw_prng_below(prng, SWITCHES_MAX)};
    for (uint32_t i = 1; i < n->switch_count; i++) {
        do
            next[i] = gw_prng_below(prng, i);
        while (depth[next[i]] == GW_LEVELS_MAX - 1);
        depth[i] = depth[next[i]] + 1;
    }
    for (uint32_t rank = 0; rank < n->world; rank++) {
        struct gw_job_way *way = &n->ways[rank];
        uint32_t at = gw_prng_below(prng, n->switch_count);
        *way = (struct gw_job_way){.worker = address_of(rank), .count = (uint8_t)(depth[at] + 1)};
        for (uint32_t i = 0; i < way->count; i++, at = next[at])
            way->switches[i] = ROOT + at;
    }
    gw_test_pool_open(&n->pool, NULL, PKTS, 0);
    struct gw_aggregate_cfg cfg = {.aggregators = 1,
                                   .jobs_max = 1,
                                   .members_max = 32,
                                   .leak = GW_S,
                                   .kernels = gw_kernels_best(gw_cpu_features()),
                                   .pool = &n->pool};
    for (uint32_t i = 0; i < n->switch_count; i++)
        n->stages[i] = gw_aggregate_init(gw_test_take(gw_aggregate_size(&cfg)), &cfg);
}

static void network_close(struct network *n)
{
    gw_test_pool_close(&n->pool);
    for (uint32_t i = 0; i < n->switch_count; i++)
        free(n->stages[i]);
}

static void network_install(struct network *n, const struct gw_job_tree *tree)
{
    for (uint32_t i = 0; i < tree->node_count; i++) {
        const struct gw_job_node *node = &tree->nodes[i];
        struct gw_aggregate_job job = {
            .job = JOB,
            .epoch = EPOCH,
            .level = node->spot.level,
            .fan_in = node->spot.fan_in,
            .above = {node->spot.above[0], node->spot.above[1]},
            .member_count = node->member_count,
            .members = tree->members + node->first_member,
            .workers = tree->workers + node->first_member,
        };
        assert_int_equal(gw_aggregate_install(n->stages[node->address - ROOT], &job), 0);
    }
}

/* Sends a worker's fragment up its way; false: a switch keeps it. Else *pkt is what arrives. */
static bool send_up(struct network *n, const struct gw_place *place, uint32_t rank,
                    struct gw_pkt *arrived)
{
    struct gw_pkt *pkt = gw_pkt_claim(&n->pool);
    *pkt = (struct gw_pkt){.q.kind = GW_PKT_GRAD,
                           .flow = JOB,
                           .epoch = EPOCH,
                           .buf = GW_BUF_NONE,
                           .agg = {.bitmap = gw_place_bit(place),
                                   .values = 1,
                                   .level = place->level,
                                   .above = {place->above[0], place->above[1]}}};
    for (uint32_t i = 0; i < n->ways[rank].count; i++)
        if (!gw_aggregate_gradient(n->stages[n->ways[rank].switches[i] - ROOT], pkt, 0))
            return false;
    *arrived = *pkt;
    gw_pkt_release(&n->pool, pkt);
    return true;
}

static uint32_t rank_of(uint32_t address)
{
    return (5000 - address) / 3;
}

/* A copy of the result on its way down to `dst`, at the switch number `hop` of dst's way. */
static void send_down(struct network *n, uint32_t dst, uint32_t hop)
{
    const struct gw_job_way *way = &n->ways[rank_of(dst)];
    const struct gw_aggregate_job *job =
        gw_aggregate_job(n->stages[way->switches[hop] - ROOT], JOB);
    uint32_t count = job ? job->member_count : 1;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t to = job ? job->members[i] : dst;
        const struct gw_job_way *its = &n->ways[rank_of(to)];
        uint32_t at = 0;
        while (at < its->count && its->switches[at] != way->switches[hop])
            at++;
        assert_true(at < its->count); /* it is below this switch */
        if (at == 0)
            n->results[rank_of(to)]++;
        else
            send_down(n, to, at - 1);
    }
}

/*
 * Every worker's fragment arrives at the server in exactly one packet, every switch of the tree
 * adds up all that is below it, and every worker gets exactly one copy of the result.
 */
static void tree__is_understood_by_switches_and_server(void **state)
{
    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed);
    struct gw_prng prng = gw_prng_derive(seed, 1);
    uint32_t deep = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct network n;
        struct gw_job_tree tree;
        uint32_t levels = 1 + gw_prng_below(&prng, 3);
        network_open(&n, &prng);
        assert_int_equal(make(&tree, n.ways, n.world, levels), GW_JOB_OK);
        assert_true(levels == 1 || tree.levels <= levels);
        deep += tree.levels == 3;
        network_install(&n, &tree);
        void *memory = gw_test_take(gw_contributors_size(n.world, tree.levels));
        struct gw_contributors contributors;
        gw_contributors_init(&contributors, memory, n.world, tree.levels);
        for (uint32_t rank = 0; rank < n.world; rank++)
            gw_contributors_enter(&contributors, rank, &tree.places[rank]);
        struct gw_rank_set all = {0}, set;
        uint32_t arrived = 0, racks = 0;
        for (uint32_t i = 0; i < n.world; i++) {
            uint32_t rank = (i + round) % n.world;
            struct gw_pkt pkt;
            if (!send_up(&n, &tree.places[rank], rank, &pkt))
                continue;
            arrived++;
            const struct gw_rank_set *from = gw_contributors_of(&contributors, &pkt, &set);
            assert_non_null(from);
            assert_false(gw_rank_set_overlaps(&all, from));
            gw_rank_set_join(&all, from);
        }
        assert_true(gw_rank_set_equals(&all, &contributors.everybody));
        for (uint32_t i = 0; i < tree.node_count; i++)
            racks += tree.nodes[i].worker_count > 0;
        assert_int_equal(arrived, levels == 1 ? racks : 1);
        send_down(&n, n.ways[0].worker, n.ways[0].count - 1u);
        for (uint32_t rank = 0; rank < n.world; rank++)
            assert_int_equal(n.results[rank], 1);
        free(memory);
        tree_free(&tree);
        network_close(&n);
    }
    assert_true(deep > ROUNDS / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tree__of_one_switch),
        cmocka_unit_test(tree__without_levels_tells_workers_apart_by_rank),
        cmocka_unit_test(tree__of_two_levels),
        cmocka_unit_test(tree__of_racks_that_add_up_for_themselves),
        cmocka_unit_test(tree__of_three_levels_and_workers_at_each),
        cmocka_unit_test(tree__of_two_levels_where_there_are_three),
        cmocka_unit_test(tree__refuses_ways_that_make_none),
        cmocka_unit_test(tree__has_32_positions_below_a_switch),
        cmocka_unit_test(tree__of_1024_workers),
        cmocka_unit_test(tree__of_ways_that_share_only_the_root),
        cmocka_unit_test(tree__is_the_simulators),
        cmocka_unit_test(tree__is_understood_by_switches_and_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
