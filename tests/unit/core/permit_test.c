/* What a host may say where it hangs: in its own name, of its own job, and in its own part. */
#include "support.h"

#include "core/job.h"
#include "core/permit.h"

enum {
    RANK = 100,
    SERVER = 200,
    JOB = 0x12345678,
    OTHER_JOB = 0x12345679,
};

static const struct gw_permit rank = {.address = RANK, .job = JOB};
static const struct gw_permit server = {.address = SERVER};

static struct gw_pkt pkt_of(const struct gw_permit *permit, enum gw_pkt_kind kind, uint32_t flow,
                            uint8_t what)
{
    return (struct gw_pkt){
        .q = {.kind = kind}, .src = permit->address, .flow = flow, .agg_flags = what};
}

static bool allows(const struct gw_permit *permit, enum gw_pkt_kind kind, uint32_t flow,
                   uint8_t what)
{
    struct gw_pkt pkt = pkt_of(permit, kind, flow, what);
    return gw_permit_allows(permit, &pkt);
}

static void permit__is_for_one_name(void **state)
{
    (void)state;
    for (uint32_t kind = 0; kind < GW_PKT_KINDS; kind++) {
        struct gw_pkt pkt = pkt_of(&rank, kind, JOB, GW_JOB_JOIN);
        pkt.src = SERVER;
        assert_false(gw_permit_allows(&rank, &pkt));
    }
}

/* Ways differ by server, and by whether switches add up; all are of the one job. */
static void permit__of_a_rank_is_for_its_job(void **state)
{
    (void)state;
    for (uint32_t shard = 0; shard < GW_JOB_SHARDS_MAX; shard++) {
        uint32_t number = gw_job_shard(JOB, shard), direct = gw_job_shard_direct(number);
        assert_true(allows(&rank, GW_PKT_GRAD, number, 0));
        assert_true(allows(&rank, GW_PKT_GRAD, direct, GW_AGG_RAW));
        assert_true(allows(&rank, GW_PKT_JOB, number, GW_JOB_JOIN));
        assert_true(allows(&rank, GW_PKT_JOB, direct, GW_JOB_LEAVE));
    }
    assert_false(allows(&rank, GW_PKT_GRAD, OTHER_JOB, 0));
    assert_false(allows(&rank, GW_PKT_GRAD, gw_job_shard(JOB, GW_JOB_SHARDS_MAX), 0));
    assert_false(allows(&rank, GW_PKT_JOB, OTHER_JOB, GW_JOB_JOIN));
    assert_false(allows(&server, GW_PKT_GRAD, JOB, 0));
}

static void permit__tells_workers_from_servers(void **state)
{
    (void)state;
    static const bool is_workers[GW_JOB_OPS] = {
        [GW_JOB_JOIN] = true, [GW_JOB_READY] = true, [GW_JOB_LEAVE] = true};
    for (uint32_t op = 0; op < 256; op++) {
        bool is_known = op < GW_JOB_OPS && op != GW_JOB_INSTALLED;
        bool is_workers_op = is_known && is_workers[op];
        assert_int_equal(allows(&rank, GW_PKT_JOB, JOB, (uint8_t)op), is_workers_op);
        assert_int_equal(allows(&server, GW_PKT_JOB, JOB, (uint8_t)op), is_known && !is_workers_op);
    }
    assert_false(allows(&rank, GW_PKT_PARAM, JOB, 0));
    assert_true(allows(&server, GW_PKT_PARAM, JOB, 0));
}

/* Switches keep an account for each job: nobody draws on that of others. */
static void permit__announces_bursts_of_its_job(void **state)
{
    (void)state;
    struct gw_pkt pkt = pkt_of(&rank, GW_PKT_NOTICE, 0, 0);
    pkt.notice.job = JOB;
    assert_true(gw_permit_allows(&rank, &pkt));
    pkt.notice.job = OTHER_JOB;
    assert_false(gw_permit_allows(&rank, &pkt));
    pkt.notice.is_answer = true; /* to who announced */
    assert_true(gw_permit_allows(&rank, &pkt));
    pkt.src = SERVER;
    assert_true(gw_permit_allows(&server, &pkt));
    pkt.notice.is_answer = false;
    assert_false(gw_permit_allows(&server, &pkt));
}

static void permit__leaves_flows_alone_and_links_to_none(void **state)
{
    (void)state;
    static const enum gw_pkt_kind flows[] = {GW_PKT_DATA, GW_PKT_ACK, GW_PKT_NACK, GW_PKT_CREDIT,
                                             GW_PKT_HAIL};
    for (size_t i = 0; i < sizeof(flows) / sizeof(flows[0]); i++) {
        assert_true(allows(&rank, flows[i], 7, 0));
        assert_true(allows(&server, flows[i], 7, 0));
    }
    assert_false(allows(&rank, GW_PKT_PAUSE, JOB, 0));
    assert_false(allows(&server, GW_PKT_PAUSE, JOB, 0));
}

/* Control is served before all else: values do not travel so, unless a switch has cut them off. */
static void permit__lets_no_values_pose_as_control(void **state)
{
    (void)state;
    static const struct {
        const struct gw_permit *permit;
        enum gw_pkt_kind kind;
    } values[] = {{&rank, GW_PKT_DATA},
                  {&server, GW_PKT_DATA},
                  {&rank, GW_PKT_GRAD},
                  {&server, GW_PKT_PARAM}};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        for (uint32_t class = 0; class <= GW_CLASS_CONTROL; class ++) {
            struct gw_pkt pkt = pkt_of(values[i].permit, values[i].kind, JOB, 0);
            pkt.q.class = class;
            assert_int_equal(gw_permit_allows(values[i].permit, &pkt), class != GW_CLASS_CONTROL);
            pkt.q.flags = GW_PKT_TRIMMED;
            assert_true(gw_permit_allows(values[i].permit, &pkt));
        }
    struct gw_pkt ack = pkt_of(&rank, GW_PKT_ACK, 7, 0);
    ack.q.class = GW_CLASS_CONTROL;
    assert_true(gw_permit_allows(&rank, &ack));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(permit__is_for_one_name),
        cmocka_unit_test(permit__of_a_rank_is_for_its_job),
        cmocka_unit_test(permit__tells_workers_from_servers),
        cmocka_unit_test(permit__announces_bursts_of_its_job),
        cmocka_unit_test(permit__leaves_flows_alone_and_links_to_none),
        cmocka_unit_test(permit__lets_no_values_pose_as_control),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
