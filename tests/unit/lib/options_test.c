/* Options of a job: what the environment says, and what is refused with which words. */
#include "lib/options.h"

#include "sim_support.h"
#include "core/notice.h"
#include "support.h"

#include <stdio.h>
#include <unistd.h>

static const char *const variables[] = {
    "RANK",
    "WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "PMI_RANK",
    "PMI_SIZE",
    "SLURM_PROCID",
    "SLURM_NTASKS",
    "GRADWIRE_JOIN",
    "GRADWIRE_SERVER",
    "GRADWIRE_SWITCH",
    "GRADWIRE_JOB",
    "GRADWIRE_BIND",
    "GRADWIRE_KEY_FILE",
    "GRADWIRE_VIA",
    "GRADWIRE_SPIN",
    "GRADWIRE_THREADS",
    "GRADWIRE_ANNOUNCE",
    "GRADWIRE_SIGNALS",
    "GRADWIRE_MULTICAST",
    "GRADWIRE_FAULTS",
    "GRADWIRE_DATAPATH",
};

/* What a launcher may have left in the environment of the tests is gone. */
static int clear(void **state)
{
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(variables); i++)
        unsetenv(variables[i]);
    return 0;
}

static void set(const char *name, const char *value)
{
    assert_int_equal(setenv(name, value, 1), 0);
}

static struct gradwire_options initial(void)
{
    struct gradwire_options options;
    memset(&options, 0xff, sizeof(options));
    gradwire_options_init(&options, sizeof(options));
    return options;
}

/* Options of one of four ranks that are all right. */
static struct gradwire_options good(void)
{
    struct gradwire_options options = initial();
    options.rank = 3;
    options.world = 4;
    options.join = "127.0.0.1:4790";
    return options;
}

static struct gw_io_plan plan_of(const struct gradwire_options *options)
{
    struct gw_io_plan plan;
    char error[GW_NET_ERROR_MAX] = "";
    int code = gw_options_plan(options, &plan, error);
    if (code)
        fail_msg("%d: %s", code, error);
    return plan;
}

static void assert_place(int rank, int world)
{
    struct gradwire_options options = initial();
    assert_int_equal(options.rank, rank);
    assert_int_equal(options.world, world);
}

static void options_init__without_environment(void **state)
{
    (void)state;
    struct gradwire_options options = initial();
    assert_int_equal(options.size, sizeof(options));
    assert_place(0, 1);
    assert_null(options.join);
    assert_null(options.server);
    assert_null(options.switch_);
    assert_null(options.job);
    assert_null(options.bind);
    assert_null(options.key_file);
    assert_int_equal(options.via, GRADWIRE_VIA_DEFAULT);
    assert_int_equal(options.deadline_ms, 30000);
    assert_int_equal(options.values, 352);
    assert_int_equal(options.window, 0);
    struct gw_io_plan plan = plan_of(&options); /* alone, a job needs nobody's address */
    assert_true(!plan.faults.lose_q32 && !plan.faults.duplicate_q32 && !plan.faults.delay_q32);
    assert_string_equal(plan.job, "default");
    assert_string_equal(plan.join, "");
}

static void options_plan__says_how_bursts_are_announced(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int notice; /* -1: refused */
    } cases[] = {{"no", GW_NOTICE_OFF},
                 {"5", 1},
                 {"75", 15},
                 {"1/4", GW_NOTICE_FORMULA + 2},
                 {"12", -1},
                 {"80", -1},
                 {"2/3", -1},
                 {"yes", -1}};
    struct gradwire_options options = good();
    struct gw_io_plan plan;
    char error[GW_NET_ERROR_MAX] = "";
    assert_int_equal(plan_of(&options).notice, GW_NOTICE_OFF);
    assert_false(plan_of(&options).signals_by_option);
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        options.announce = cases[i].text;
        if (cases[i].notice >= 0) {
            assert_int_equal(plan_of(&options).notice, cases[i].notice);
            continue;
        }
        assert_int_equal(gw_options_plan(&options, &plan, error), GRADWIRE_ERR_INVALID);
        assert_non_null(strstr(error, cases[i].text));
    }
    options = good();
    options.signals = "option";
    assert_true(plan_of(&options).signals_by_option);
    options.signals = "ttl";
    assert_int_equal(gw_options_plan(&options, &plan, error), GRADWIRE_ERR_INVALID);
    assert_string_equal(error, "signals is ttl: dscp or option");
    set("GRADWIRE_ANNOUNCE", "1/2");
    set("GRADWIRE_SIGNALS", "option");
    options = good();
    assert_int_equal(plan_of(&options).notice, GW_NOTICE_FORMULA + 1);
    assert_true(plan_of(&options).signals_by_option);
}

/* By itself where it saves something, and where nothing is to be kept between two. */
static void options_plan__says_where_results_go(void **state)
{
    (void)state;
    char path[GW_TEST_PATH_MAX], error[GW_NET_ERROR_MAX] = "";
    struct gradwire_options options = good();
    struct gw_io_plan plan = plan_of(&options);
    assert_true(plan.chooses_group && plan.hears_groups && plan.group.length == 0);
    options.world = 2;
    options.rank = 1;
    assert_false(plan_of(&options).chooses_group);
    options = good();
    options.multicast = "none";
    plan = plan_of(&options);
    assert_true(!plan.chooses_group && !plan.hears_groups && plan.group.length == 0);
    options.multicast = "239.1.2.3:4000";
    plan = plan_of(&options);
    assert_true(!plan.chooses_group && plan.hears_groups);
    assert_true(gw_sock_addr_is_multicast(&plan.group) && gw_sock_addr_port(&plan.group) == 4000);
    gw_test_write_file(path, "a key that is long enough for anybody");
    options.key_file = path;
    assert_true(plan_of(&options).group.length > 0);
    options.authenticate = 1;
    assert_int_equal(gw_options_plan(&options, &plan, error), GRADWIRE_ERR_INVALID);
    assert_string_equal(error, "multicast is 239.1.2.3:4000: with authenticate or encrypt it must "
                               "be none");
    options.multicast = NULL;
    assert_false(plan_of(&options).chooses_group);
    unlink(path);
    set("GRADWIRE_MULTICAST", "none");
    options = good();
    assert_false(plan_of(&options).hears_groups);
}

static void options_init__takes_our_variables(void **state)
{
    (void)state;
    set("GRADWIRE_JOIN", "a:1");
    set("GRADWIRE_SERVER", "b:2");
    set("GRADWIRE_SWITCH", "c:3");
    set("GRADWIRE_JOB", "vgg");
    set("GRADWIRE_BIND", "10.0.0.7");
    set("GRADWIRE_KEY_FILE", "/etc/key");
    struct gradwire_options options = initial();
    assert_string_equal(options.join, "a:1");
    assert_string_equal(options.server, "b:2");
    assert_string_equal(options.switch_, "c:3");
    assert_string_equal(options.job, "vgg");
    assert_string_equal(options.bind, "10.0.0.7");
    assert_string_equal(options.key_file, "/etc/key");
    static const char *const ways[] = {"ina", "ps", "ring", "default"};
    for (int via = 0; via < 4; via++) {
        set("GRADWIRE_VIA", ways[via]);
        assert_int_equal(initial().via, via);
    }
    set("GRADWIRE_SERVER", ""); /* as if it were not set */
    assert_null(initial().server);
}

static void options_init__takes_rank_and_world_of_launchers(void **state)
{
    (void)state;
    set("SLURM_PROCID", "1"); /* from the last in order to the first */
    set("SLURM_NTASKS", "2");
    assert_place(1, 2);
    set("PMI_RANK", "2");
    set("PMI_SIZE", "3");
    assert_place(2, 3);
    set("OMPI_COMM_WORLD_RANK", "5");
    set("OMPI_COMM_WORLD_SIZE", "8");
    assert_place(5, 8);
    set("RANK", "9"); /* half of a launcher is none, where another is whole */
    assert_place(5, 8);
    set("WORLD_SIZE", "16");
    assert_place(9, 16);
    clear(NULL);
    set("SLURM_NTASKS", "2"); /* as in a shell of salloc */
    assert_place(0, 1);
}

static void options_init__takes_join_of_torchrun(void **state)
{
    (void)state;
    set("MASTER_ADDR", "node7");
    assert_null(initial().join);
    set("MASTER_PORT", "29500");
    assert_string_equal(initial().join, "node7:29501");
    set("MASTER_ADDR", "fe80::1");
    assert_string_equal(initial().join, "[fe80::1]:29501");
    set("GRADWIRE_JOIN", "node8:1");
    assert_string_equal(initial().join, "node8:1");
}

static void options_init__knows_smaller_structures(void **state)
{
    (void)state;
    struct gradwire_options options;
    memset(&options, 0xff, sizeof(options));
    gradwire_options_init(&options, offsetof(struct gradwire_options, join));
    assert_int_equal(options.world, 1);
    assert_int_equal((uintptr_t)options.join, UINTPTR_MAX);
}

static void options_plan__copies_what_is_given(void **state)
{
    (void)state;
    char name[] = "vgg";
    struct gradwire_options options = good();
    options.job = name;
    options.server = "server:1";
    options.switch_ = "switch:2";
    options.bind = "10.0.0.7";
    options.via = GRADWIRE_VIA_PS;
    options.deadline_ms = 1500;
    options.values = 62;
    options.window = 64;
    set("GRADWIRE_FAULTS", "lose=0.5,duplicate=25%,delay=0.125,seed=40");
    struct gw_io_plan plan = plan_of(&options);
    name[0] = 'x';
    assert_string_equal(plan.job, "vgg");
    assert_string_equal(plan.join, "127.0.0.1:4790");
    assert_string_equal(plan.servers[0], "server:1");
    assert_string_equal(plan.switch_, "switch:2");
    assert_string_equal(plan.bind, "10.0.0.7");
    assert_int_equal(plan.via, GRADWIRE_VIA_PS);
    assert_int_equal(plan.rank, 3);
    assert_int_equal(plan.world, 4);
    assert_int_equal(plan.values, 62);
    assert_int_equal(plan.window, 64);
    assert_int_equal(plan.stall, 1500 * GW_MS);
    assert_int_equal(plan.faults.lose_q32, UINT64_C(1) << 31);
    assert_int_equal(plan.faults.duplicate_q32, UINT64_C(1) << 30);
    assert_int_equal(plan.faults.delay_q32, UINT64_C(1) << 29);
    options.rank = 2; /* faults of ranks are independent */
    assert_true(plan_of(&options).faults.seed != plan.faults.seed);
}

static void options_plan__zero_is_the_default(void **state)
{
    (void)state;
    struct gradwire_options options = good();
    options.deadline_ms = options.values = options.window = 0;
    struct gw_io_plan plan = plan_of(&options);
    assert_int_equal(plan.stall, 30000 * GW_MS);
    assert_int_equal(plan.values, 352);
    assert_int_equal(plan.window, 0);
}

static void options_plan__key_is_the_file(void **state)
{
    (void)state;
    char path[GW_TEST_PATH_MAX];
    struct gradwire_options options = good();
    struct gw_key none = plan_of(&options).key;
    gw_test_write_file(path, "secret");
    options.key_file = path;
    struct gw_key first = plan_of(&options).key;
    assert_memory_equal(plan_of(&options).key.attach, first.attach, sizeof(first.attach));
    unlink(path);
    gw_test_write_file(path, "another");
    struct gw_key second = plan_of(&options).key;
    unlink(path);
    assert_memory_not_equal(first.attach, none.attach, sizeof(none.attach));
    assert_memory_not_equal(first.attach, second.attach, sizeof(first.attach));
}

static void assert_refused(const struct gradwire_options *options, int right, const char *word)
{
    struct gw_io_plan plan;
    gradwire *job = NULL;
    char error[GW_NET_ERROR_MAX] = "";
    assert_int_equal(gw_options_plan(options, &plan, error), right);
    if (!strstr(error, word))
        fail_msg("'%s' does not say '%s'", error, word);
    assert_null(strchr(error, '\n'));
    assert_int_equal(gradwire_open(options, &job), right);
    assert_string_equal(gradwire_last_error(), error);
    assert_null(job);
}

static void options_plan__takes_several_servers(void **state)
{
    (void)state;
    struct gradwire_options options = good();
    assert_int_equal(plan_of(&options).server_count, 0);
    options.server = "a:1,b:2,[::1]:3";
    options.switch_ = "c:4"; /* with a server or without */
    struct gw_io_plan plan = plan_of(&options);
    assert_int_equal(plan.server_count, 3);
    assert_string_equal(plan.servers[0], "a:1");
    assert_string_equal(plan.servers[1], "b:2");
    assert_string_equal(plan.servers[2], "[::1]:3");
    options.server = "a:1,b:1,c:1,d:1,e:1,f:1,g:1,h:1,i:1,j:1,k:1,l:1,m:1,n:1,o:1,p:1";
    assert_int_equal(plan_of(&options).server_count, 16);
    options.server = "a:4790-4792,[::1]:7-8,b:1";
    plan = plan_of(&options);
    assert_int_equal(plan.server_count, 6);
    assert_string_equal(plan.servers[0], "a:4790");
    assert_string_equal(plan.servers[2], "a:4792");
    assert_string_equal(plan.servers[4], "[::1]:8");
    assert_string_equal(plan.servers[5], "b:1");
    options.server = "";
    assert_int_equal(plan_of(&options).server_count, 0);
    assert_string_equal(plan_of(&options).switch_, "c:4");
}

#define REFUSES(field, value, word)                                                                \
    do {                                                                                           \
        struct gradwire_options options = good();                                                  \
        options.field = value;                                                                     \
        assert_refused(&options, GRADWIRE_ERR_INVALID, word);                                      \
    } while (0)

static void options_plan__names_what_is_out_of_range(void **state)
{
    (void)state;
    char long_name[GW_IO_NAME_MAX + 1];
    memset(long_name, 'x', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    REFUSES(world, 0, "world is 0");
    REFUSES(world, -1, "world is -1");
    REFUSES(world, 1025, "world is 1025");
    REFUSES(rank, 4, "rank is 4");
    REFUSES(rank, -1, "rank is -1");
    REFUSES(values, 15, "values is 15");
    REFUSES(values, 16001, "values is 16001");
    REFUSES(values, UINT32_MAX, "values is 4294967295");
    REFUSES(window, 1, "window is 1:");
    REFUSES(window, 100, "window is 100");
    REFUSES(window, 4096, "window is 4096: a power of two, 2 to 2048");
    REFUSES(deadline_ms, 99, "deadline_ms is 99");
    REFUSES(deadline_ms, 3600001, "deadline_ms is 3600001");
    REFUSES(via, GRADWIRE_VIA_DEFAULT + 1, "via");
    REFUSES(via, (enum gradwire_via) - 1, "via");
    REFUSES(join, NULL, "join");
    REFUSES(switch_, long_name, "switch is longer than 255 bytes");
    REFUSES(bind, long_name, "bind is longer than 255 bytes");
    REFUSES(server, long_name, "server is xx");
    REFUSES(server, ",a:1", "server is ,a:1: HOST:PORT, or several with commas between");
    REFUSES(server, "a:1,", "server is a:1,");
    REFUSES(server, "a:1,,b:2", "server is ,b:2");
    REFUSES(server, "a:1,b:2,a:1", "server is a:1 twice");
    REFUSES(server, "a:1,b:1,c:1,d:1,e:1,f:1,g:1,h:1,i:1,j:1,k:1,l:1,m:1,n:1,o:1,p:1,q:1",
            "server is q:1, and more: at most 16");
    REFUSES(server, "a:1,b", "server is b: not HOST:PORT");
    REFUSES(server, "a:1-16,a:17", "server is a:17, and more: at most 16");
    REFUSES(server, "a:1-17", "server is a:1-17, and more: at most 16");
    REFUSES(server, "a:1-3,b:1,a:3", "server is a:3 twice");
    REFUSES(server, "a:2-1", "server is a:2-1: not HOST:PORT, nor HOST:FIRST-LAST");
    REFUSES(join, "nowhere", "join is nowhere: not HOST:PORT");
    REFUSES(switch_, "s:0", "switch is s:0: not HOST:PORT");
    REFUSES(multicast, "10.0.0.1:4000", "multicast is 10.0.0.1:4000: none, or ADDRESS:PORT of a");
    REFUSES(multicast, "239.1.2.3", "multicast is 239.1.2.3: none, or ADDRESS:PORT of a");
    REFUSES(job, long_name, "job is longer than 255 bytes");
    REFUSES(join, long_name, "join is longer than 255 bytes");
    REFUSES(key_file, "/nonexistent/key", "/nonexistent/key");
    REFUSES(urgency, "haste", "no rule of urgency is called haste");
    REFUSES(authenticate, 1, "key_file is not given");
    REFUSES(encrypt, 1, "encrypt needs a key: key_file is not given");
}

/* As many fragments as an endpoint keeps masks for, and as many bytes as a message has. */
static void options_plan__names_how_large_the_largest_may_be(void **state)
{
    (void)state;
    static const struct {
        uint32_t values;
        uint64_t most;
        const char *text;
    } cases[] = {
        {62, UINT64_C(4160749568), "at most 4160749568 bytes with fragments of 62 values"},
        {352, UINT64_C(23622320128), "largest is 23622320129: at most 23622320128 bytes with"},
        {16000, UINT64_C(1) << 36, "at most 68719476736 bytes with fragments of 16000 values"},
    };
    struct gradwire_options options = good();
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        options.values = cases[i].values;
        options.largest = cases[i].most;
        assert_int_equal(plan_of(&options).largest, cases[i].most);
        options.largest++;
        assert_refused(&options, GRADWIRE_ERR_INVALID, cases[i].text);
    }
    options.largest = UINT64_MAX;
    assert_refused(&options, GRADWIRE_ERR_INVALID, "largest is 18446744073709551615: at most");
}

static void options_plan__refuses_other_sizes(void **state)
{
    (void)state;
    REFUSES(size, 0, "version");
    REFUSES(size, sizeof(size_t) + 1, "version"); /* half a pointer */
    REFUSES(size, sizeof(struct gradwire_options) + 8, "version");
    gradwire *job = NULL;
    struct gradwire_options options = good();
    assert_int_equal(gradwire_open(NULL, &job), GRADWIRE_ERR_INVALID);
    assert_int_equal(gradwire_open(&options, NULL), GRADWIRE_ERR_INVALID);
    assert_null(job);
}

/* A number or a word that is none must not become a default that sums over too few. */
static void options_plan__refuses_what_the_environment_got_wrong(void **state)
{
    (void)state;
    static const char *const wrong[] = {"5000", "-1", "four", "4x", "99999999999999999999"};
    set("GRADWIRE_JOIN", "127.0.0.1:4790");
    for (size_t i = 0; i < GW_COUNT_OF(wrong); i++) {
        char line[128];
        set("RANK", "0");
        set("WORLD_SIZE", wrong[i]);
        struct gradwire_options options = initial();
        snprintf(line, sizeof(line), "WORLD_SIZE is %s: 1 to 1024", wrong[i]);
        assert_refused(&options, GRADWIRE_ERR_INVALID, line);
        set("RANK", wrong[i]);
        set("WORLD_SIZE", "4");
        options = initial();
        snprintf(line, sizeof(line), "RANK is %s, world is 4: rank must be 0 to", wrong[i]);
        assert_refused(&options, GRADWIRE_ERR_INVALID, line);
        options.rank = 5; /* of the program itself */
        assert_refused(&options, GRADWIRE_ERR_INVALID, "rank is 5, world is 4");
    }
    set("RANK", "0");
    set("WORLD_SIZE", "0");
    struct gradwire_options options = initial();
    assert_refused(&options, GRADWIRE_ERR_INVALID, "WORLD_SIZE is 0: 1 to 1024");
    clear(NULL);
    set("SLURM_PROCID", "two");
    set("SLURM_NTASKS", "4");
    options = initial();
    assert_refused(&options, GRADWIRE_ERR_INVALID, "SLURM_PROCID is two, world is 4");
    clear(NULL);
    set("GRADWIRE_VIA", "teleport");
    options = initial();
    assert_refused(&options, GRADWIRE_ERR_INVALID, "GRADWIRE_VIA is teleport");
    clear(NULL);
    set("GRADWIRE_SPIN", "round");
    options = initial();
    assert_refused(&options, GRADWIRE_ERR_INVALID, "GRADWIRE_SPIN is round: 0 to 1000000");
    options.spin_us = 1000001;
    assert_refused(&options, GRADWIRE_ERR_INVALID, "spin_us is 1000001");
    clear(NULL);
    set("GRADWIRE_THREADS", "many");
    options = initial();
    assert_refused(&options, GRADWIRE_ERR_INVALID, "GRADWIRE_THREADS is many: 1 to 16");
    options.threads = 3;
    options.world = 3;
    options.join = "127.0.0.1:9998";
    options.multicast = "239.255.255.254:9999";
    assert_refused(&options, GRADWIRE_ERR_INVALID, "no groups for 3 threads");
    options.threads = 17;
    assert_refused(&options, GRADWIRE_ERR_INVALID, "threads is 17: 1 to 16");
    set("GRADWIRE_THREADS", "0");
    options = initial();
    assert_refused(&options, GRADWIRE_ERR_INVALID, "GRADWIRE_THREADS is 0: 1 to 16");
    options.threads = 0; /* of a program it is the default */
    plan_of(&options);
    clear(NULL);
    set("RANK", "1");
    set("WORLD_SIZE", "2");
    set("MASTER_ADDR", "127.0.0.1");
    for (int i = 0; i < 2; i++) {
        gradwire *job = NULL;
        set("MASTER_PORT", i ? "65535" : "http");
        options = initial();
        assert_int_equal(gradwire_open(&options, &job), GRADWIRE_ERR_INVALID);
        assert_non_null(strstr(gradwire_last_error(), i ? "127.0.0.1:65536" : "127.0.0.1:http"));
    }
}

/* Whose variable is forgotten must not be a job of his own. */
static void options_plan__refuses_half_a_place(void **state)
{
    (void)state;
    set("GRADWIRE_JOIN", "127.0.0.1:4790");
    set("RANK", "1");
    struct gradwire_options options = initial();
    assert_refused(&options, GRADWIRE_ERR_INVALID, "RANK is set, WORLD_SIZE is not");
    options.world = 2; /* the program knows */
    assert_int_equal(plan_of(&options).rank, 1);
    clear(NULL);
    set("GRADWIRE_JOIN", "127.0.0.1:4790");
    set("WORLD_SIZE", "2");
    set("RANK", ""); /* as if it were not set */
    options = initial();
    assert_refused(&options, GRADWIRE_ERR_INVALID, "WORLD_SIZE is set, RANK is not");
    options.rank = 1;
    assert_int_equal(plan_of(&options).world, 2);
}

/* A fault that is not understood must not become a test without it. */
static void options_plan__refuses_faults_that_are_none(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "lose=0.51",
        "duplicate=-0.1",
        "delay=nan",
        "seed=-1",
        "seed=x",
        "lose",
        "lose=",
        "loss=0.1",
        "delay=0.1 ",
        "lose=0.1;delay=0.1",
        "lose=0.10000000000000000000000000000000000000000000000000000000000000000"};
    char text[128];
    struct gradwire_options options = good();
    for (size_t i = 0; i < GW_COUNT_OF(wrong); i++) {
        snprintf(text, sizeof(text), "seed=3,%s,delay=0.1", wrong[i]);
        set("GRADWIRE_FAULTS", text);
        assert_refused(&options, GRADWIRE_ERR_INVALID, wrong[i]);
    }
    set("GRADWIRE_FAULTS", ""); /* as if it were not set */
    assert_int_equal(plan_of(&options).faults.lose_q32, 0);
}

static void options_plan__chooses_a_datapath(void **state)
{
    (void)state;
    struct gradwire_options options = good();
    assert_string_equal(plan_of(&options).datapath->name, "udp");
    set("GRADWIRE_DATAPATH", "memory");
    assert_string_equal(plan_of(&options).datapath->name, "memory");
    set("GRADWIRE_DATAPATH", "pigeon");
    assert_refused(&options, GRADWIRE_ERR_INVALID, "pigeon: udp, memory");
}

static void calls__need_a_job(void **state)
{
    (void)state;
    float x = 1;
    int done;
    gradwire_call call;
    struct gradwire_stats stats = {.size = sizeof(stats)};
    const enum gradwire_type type = GRADWIRE_FLOAT32;
    assert_int_equal(gradwire_allreduce(NULL, &x, &x, 1, type, 0), GRADWIRE_ERR_INVALID);
    assert_non_null(strstr(gradwire_last_error(), "job"));
    assert_int_equal(gradwire_allreduce_start(NULL, &x, &x, 1, type, 0, &call),
                     GRADWIRE_ERR_INVALID);
    assert_int_equal(gradwire_wait(NULL, 1), GRADWIRE_ERR_INVALID);
    assert_int_equal(gradwire_test(NULL, 1, &done), GRADWIRE_ERR_INVALID);
    assert_int_equal(gradwire_reduce(NULL, &x, &x, 1, type, 0, 0), GRADWIRE_ERR_INVALID);
    assert_int_equal(gradwire_broadcast(NULL, &x, 1, type, 0), GRADWIRE_ERR_INVALID);
    assert_int_equal(gradwire_allgather(NULL, &x, &x, 1, type), GRADWIRE_ERR_INVALID);
    assert_int_equal(gradwire_reduce_scatter(NULL, &x, &x, 1, type, 0), GRADWIRE_ERR_INVALID);
    assert_int_equal(gradwire_barrier(NULL), GRADWIRE_ERR_INVALID);
    assert_int_equal(gradwire_get_stats(NULL, &stats), GRADWIRE_ERR_INVALID);
    gradwire_close(NULL);
}

static void error_text__is_one_of_each(void **state)
{
    (void)state;
    for (int a = GRADWIRE_ERR_BUSY; a <= GRADWIRE_OK; a++) {
        assert_string_not_equal(gradwire_error_text(a), "unknown error");
        for (int b = GRADWIRE_ERR_BUSY; b < a; b++)
            assert_string_not_equal(gradwire_error_text(a), gradwire_error_text(b));
    }
    assert_string_equal(gradwire_error_text(1), "unknown error");
    assert_string_equal(gradwire_error_text(GRADWIRE_ERR_BUSY - 1), "unknown error");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, clear)
    const struct CMUnitTest tests[] = {
        TEST(options_init__without_environment),
        TEST(options_plan__says_where_results_go),
        TEST(options_init__takes_our_variables),
        TEST(options_plan__says_how_bursts_are_announced),
        TEST(options_init__takes_rank_and_world_of_launchers),
        TEST(options_init__takes_join_of_torchrun),
        TEST(options_init__knows_smaller_structures),
        TEST(options_plan__copies_what_is_given),
        TEST(options_plan__zero_is_the_default),
        TEST(options_plan__key_is_the_file),
        TEST(options_plan__takes_several_servers),
        TEST(options_plan__names_what_is_out_of_range),
        TEST(options_plan__names_how_large_the_largest_may_be),
        TEST(options_plan__refuses_other_sizes),
        TEST(options_plan__refuses_what_the_environment_got_wrong),
        TEST(options_plan__refuses_half_a_place),
        TEST(options_plan__refuses_faults_that_are_none),
        TEST(options_plan__chooses_a_datapath),
        TEST(calls__need_a_job),
        TEST(error_text__is_one_of_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
