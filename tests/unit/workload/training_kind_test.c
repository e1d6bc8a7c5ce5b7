/* The jobs that the kind `training` makes of its keys, and what it refuses. */
#include "unit/workload/workload_fixture.h"

static void open_topo(struct gw_topo *topo)
{
    build(topo, "leaf-spine", "leaves=2 spines=1 hosts_per_leaf=8");
}

static const struct gw_job_spec *job_of(const struct generated *generated, uint32_t job)
{
    assert_int_equal(generated->error, GW_OK);
    assert_true(job < generated->workload.job_count);
    return &generated->workload.jobs[job];
}

static void generate__makes_jobs_of_one_plan(void **state)
{
    (void)state;
    struct gw_topo topo;
    struct generated generated;
    open_topo(&topo);
    generate(
        &generated, &topo, "training",
        "model=vgg16 jobs=3 workers=4 via=ps schedule=p3 partition=100KB iterations=7 start=1ms "
        "interval=2ms",
        1);
    assert_int_equal(generated.workload.job_count, 3);
    assert_int_equal(generated.workload.plan_count, 1);
    assert_string_equal(generated.workload.plans[0].name, "vgg16");
    for (uint32_t i = 0; i < 3; i++) {
        const struct gw_job_spec *job = job_of(&generated, i);
        assert_int_equal(job->via, GW_JOB_VIA_PUSH);
        assert_string_equal(job->way, "ps");
        assert_int_equal(job->worker_count, 4);
        assert_int_equal(job->server_count, 1);
        assert_int_equal(job->iterations, 7);
        assert_int_equal(job->bytes, 4 * UINT64_C(138357544));
        assert_true(job->start == (1 + 2 * i) * GW_MS);
        assert_int_equal(job->train.batch, 32);
        assert_int_equal(job->train.schedule->partition(job->train.schedule_cfg), 100000);
    }
    gw_workload_fini(&generated.workload);
    gw_topo_fini(&topo);
}

static void generate__finds_every_way(void **state)
{
    (void)state;
    static const struct {
        const char *set, *way;
        enum gw_job_via via;
        uint32_t servers;
    } cases[] = {
        {"via=ina", "ina", GW_JOB_VIA_INA, 1},
        {"via=rss servers=2", "rss", GW_JOB_VIA_RSS, 2},
        {"via=ps servers=4 colocated=yes", "ps", GW_JOB_VIA_PUSH, 4},
        {"via=server", "server", GW_JOB_VIA_PS, 1},
        {"via=switchml", "switchml", GW_JOB_VIA_SWITCHML, 0},
        {"via=ring", "ring", GW_JOB_VIA_COLL, 0},
        {"via=hd", "halving-doubling", GW_JOB_VIA_COLL, 0},
    };
    struct gw_topo topo;
    open_topo(&topo);
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct generated generated;
        char set[128];
        snprintf(set, sizeof(set), "workers=4 %s", cases[i].set);
        generate(&generated, &topo, "training", set, 1);
        const struct gw_job_spec *job = job_of(&generated, 0);
        assert_string_equal(job->way, cases[i].way);
        assert_int_equal(job->via, cases[i].via);
        assert_int_equal(job->server_count, cases[i].servers);
        gw_workload_fini(&generated.workload);
    }
    gw_topo_fini(&topo);
}

static void generate__takes_jobs_from_a_trace(void **state)
{
    (void)state;
    struct gw_topo topo;
    struct generated generated;
    char file[32], set[64];
    generate_file(file, "start,model,workers,iterations\n"
                        "0,resnet18,4,3\n1ms,alexnet,2,5\n2ms,resnet18,1,1\n");
    snprintf(set, sizeof(set), "jobs=9 workers=9 file=%s", file);
    open_topo(&topo);
    generate(&generated, &topo, "training", set, 1);
    assert_int_equal(generated.workload.job_count, 3);
    assert_int_equal(generated.workload.plan_count, 2);
    static const uint32_t plans[] = {0, 1, 0}, workers[] = {4, 2, 1}, iterations[] = {3, 5, 1};
    for (uint32_t i = 0; i < 3; i++) {
        const struct gw_job_spec *job = job_of(&generated, i);
        assert_int_equal(job->train.plan, plans[i]);
        assert_int_equal(job->worker_count, workers[i]);
        assert_int_equal(job->iterations, iterations[i]);
        assert_true(job->start == i * GW_MS);
    }
    unlink(file);
    gw_workload_fini(&generated.workload);
    gw_topo_fini(&topo);
}

/* Runs the kind for a second entry, on hosts that the first one has taken half of. */
static int second_entry(const struct gw_topo *topo, const char *set, struct generated *generated)
{
    union gw_algo_cfg cfg;
    const struct gw_algo *algo = gw_registry_find(&gw_workload_registry, "training");
    generate(generated, topo, "training", "workers=7", 1);
    assert_int_equal(generated->error, GW_OK);
    build_settings(algo, &cfg, set);
    struct gw_workload_ctx ctx = {
        .topo = topo, .directory = ".", .why = generated->why, .why_size = sizeof(generated->why)};
    return ((const struct gw_workload_kind *)algo)->generate(&generated->workload, &cfg, &ctx);
}

static void generate__leaves_hosts_to_earlier_entries(void **state)
{
    (void)state;
    struct gw_topo topo;
    struct generated generated;
    open_topo(&topo);
    assert_int_equal(second_entry(&topo, "workers=7", &generated), GW_OK);
    bool is_taken[16] = {false};
    for (uint32_t i = 0; i < generated.workload.job_host_count; i++) {
        assert_false(is_taken[generated.workload.job_hosts[i]]);
        is_taken[generated.workload.job_hosts[i]] = true;
    }
    gw_workload_fini(&generated.workload);
    assert_int_equal(second_entry(&topo, "workers=8", &generated), GW_ERR_RANGE);
    assert_non_null(strstr(generated.why, "none are left for job 0"));
    gw_workload_fini(&generated.workload);
    assert_int_equal(second_entry(&topo, "workers=8 exclusive=no", &generated), GW_OK);
    gw_workload_fini(&generated.workload);
    assert_int_equal(second_entry(&topo, "workers=2 placement=given hosts=0-2", &generated), GW_OK);
    assert_int_equal(generated.workload.job_hosts[7], 0);
    assert_int_equal(generated.workload.job_servers[1], 2);
    gw_workload_fini(&generated.workload);
    gw_topo_fini(&topo);
}

static void generate__refuses_what_makes_no_sense(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"via=tube", "via: unknown: tube; expected ina"},
        {"via=doubling bound=0.1", "bound: via doubling each pair makes a result of its own"},
        {"via=hd workers=6", "workers: halving-doubling does not allow 6"},
        {"via=ring workers=1", "workers must be from 2"},
        {"model=resnet51", "model"},
        {"device=abacus", "device"},
        {"schedule=fifo", "schedule: unknown: fifo; expected one of "},
        {"schedule=wfbp partition=1MB", "partition: schedule wfbp has none"},
        {"schedule=p3 credit=many", "credit: expected bytes"},
        {"compression=2", "compression"},
        {"batch=0", "batch must not be 0"},
        {"iterations=0", "iterations must be"},
        {"jitter=1.5", "jitter must be"},
        {"slowdown=0.5", "slowdown must be"},
        {"images_per_s=0.01 slowdown=1000", "slowdown: an iteration of the slowest worker would"},
        {"images_per_s=0.001", "images_per_s: 32 of resnet50 take longer than an hour"},
        {"model=", "model: missing: its name"},
        {"timeout=999ps", "timeout must be from 1 ns to 1 hour"},
        {"timeout=3601s", "timeout must be from 1 ns to 1 hour"},
        {"leak=0", "leak must be from"},
        {"beat=1ps", "beat must be from"},
        {"lost=1ps", "lost must be from"},
        {"lost=5ms beat=5ms", "lost must be longer than beat"},
        {"cycle=432001s", "cycle must be at most 5 days"},
        {"slowdown=2 straggler=8", "straggler must be a rank, below 8"},
        {"start=2ms end=1ms", "end must be after"},
        {"synchronous=no", "synchronous: only servers"},
        {"via=ps synchronous=no colocated=yes servers=9", "colocated"},
        {"via=ps bound=1", "bound must be at least 0 and below 100%"},
        {"via=ps bound_pull=1", "bound_pull must"},
        {"via=switchml bound=0.1", "bound: needs gradients that travel as messages"},
        {"via=ps bound=0.1 fusion=1MB", "fusion: with a bound"},
        {"via=switchml priority=layer", "priority: needs gradients that travel as messages"},
        {"via=switchml importance=none", "importance: needs gradients that travel"},
        {"via=ps important_first=yes", "important_first: needs an importance by which packets"},
        {"via=ps important_first=yes importance=none", "important_first: needs an importance"},
        {"via=ps classes=0", "classes must be from 1 to 7, not 0"},
        {"via=ps spread=4.1", "spread must be from 0 to 4"},
        {"jobs=2 workers=8", "jobs: 2 of 8 workers"},
        {"jobs=0", "jobs"},
        {"hosts=1,2", "hosts: needs placement: given"},
        {"placement=given hosts=1,2", "hosts: none are left"},
        {"placement=given hosts=99", "hosts: 99"},
        {"file=/nonexistent", "file"},
        {"file=/dev/zero", "file /dev/zero:1: no text"},
        {"file=/tmp", "file /tmp: Is a directory"},
    };
    struct gw_topo topo;
    open_topo(&topo);
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++)
        generate_refused(&topo, "training", cases[i][0], cases[i][1]);
    gw_topo_fini(&topo);
}

/* A model of one layer with so many weights; `file` gets its path. */
static void model_file(char file[32], const char *weights)
{
    char text[128];
    snprintf(text, sizeof(text), "layer,kind,weights,biases,macs\na,conv,%s,0,1\n", weights);
    strcpy(file, "/tmp/gwtestXXXXXX.csv");
    int fd = mkstemps(file, (int)strlen(".csv"));
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void generate__refuses_more_than_can_be_numbered(void **state)
{
    (void)state;
    static const struct {
        const char *weights, *set, *why; /* NULL: it is accepted */
    } cases[] = {
        {"3000000000", "values=1", "model: 12000000000 bytes of gradients in fragments of 1 "},
        {"3000000000", "values=1 via=switchml", "model: 12000000000 bytes"},
        {"3000000000", "values=1 via=server", "model: 12000000000 bytes"},
        {"3000000000", "values=1 via=ps", NULL},
        {"3000000000", "values=3", NULL},
        {"1073741822", "values=1", NULL}, /* and one for the end of the piece */
        {"1073741823", "values=1", "model: 4294967292 bytes"},
        {"1000000000000", "values=352", "model: 4000000000000 bytes"},
        {"549755813888", "schedule=p3 partition=1024 via=ps",
         "partition: 1024 bytes cut the gradients into 2147483648 pieces; the limit is 16777216"},
        {"4294967296", "schedule=p3 partition=1024 via=ps", NULL},
        {"4294967297", "schedule=p3 partition=1024 via=ring", "partition: 1024 bytes"},
    };
    struct gw_topo topo;
    open_topo(&topo);
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct generated generated;
        char file[32], set[160];
        model_file(file, cases[i].weights);
        snprintf(set, sizeof(set), "device=none workers=4 model=%s %s", file, cases[i].set);
        if (cases[i].why)
            generate_refused(&topo, "training", set, cases[i].why);
        generate(&generated, &topo, "training", set, 1);
        assert_int_equal(generated.error, cases[i].why ? GW_ERR_RANGE : GW_OK);
        gw_workload_fini(&generated.workload);
        unlink(file);
    }
    generate_refused(&topo, "allreduce", "values=1 size=12000000000", "size: 12000000000 bytes");
    gw_topo_fini(&topo);
}

/* A job of a file is refused at its line, but for what a key of the entry says. */
static void generate__names_the_line_of_a_job(void **state)
{
    (void)state;
    static const struct {
        const char *set, *why; /* after "file NAME:" if the line is at fault */
        bool is_line;
    } cases[] = {
        {"via=ina", "3: workers must be from 1 to 1024, not 2000", true},
        {"via=hd", "2: workers: halving-doubling does not allow 3", true},
        {"via=ina values=0", "values must be from 1", false},
        {"via=ina end=1us", "3: workers must be from 1 to 1024, not 2000", true},
        {"via=tube", "via: unknown: tube", false},
    };
    struct gw_topo topo;
    open_topo(&topo);
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        char file[32], set[128], why[128];
        generate_file(file, "start,model,workers,iterations\n0,alexnet,3,1\n0,alexnet,2000,1\n");
        snprintf(set, sizeof(set), "file=%s %s", file, cases[i].set);
        if (cases[i].is_line)
            snprintf(why, sizeof(why), "file %s:%s", file, cases[i].why);
        else
            snprintf(why, sizeof(why), "%s", cases[i].why);
        generate_refused(&topo, "training", set, why);
        unlink(file);
    }
    gw_topo_fini(&topo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generate__makes_jobs_of_one_plan),
        cmocka_unit_test(generate__finds_every_way),
        cmocka_unit_test(generate__takes_jobs_from_a_trace),
        cmocka_unit_test(generate__leaves_hosts_to_earlier_entries),
        cmocka_unit_test(generate__refuses_what_makes_no_sense),
        cmocka_unit_test(generate__names_the_line_of_a_job),
        cmocka_unit_test(generate__refuses_more_than_can_be_numbered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
