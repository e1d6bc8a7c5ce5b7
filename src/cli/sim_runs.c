/* Sweep points and seeds, one run after the other; see sim_runs.h. */
#include "cli/sim_runs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/claims.h"
#include "cli/cli.h"
#include "cli/json_print.h"
#include "cli/report.h"
#include "cli/stopwatch.h"
#include "cli/table.h"
#include "cli/trace_events.h"
#include "topo/memory.h"

enum {
    BAR_WIDTH = 40,
    PATH_SIZE = 4096,
};

static void show_progress(void *arg, uint32_t done, uint32_t total, gw_time now)
{
    (void)arg;
    uint32_t filled = total ? (uint32_t)((uint64_t)done * BAR_WIDTH / total) : 0;
    fprintf(stderr, "\r[%.*s%*s] %u of %u flows, %.1f us ", (int)filled,
            "########################################", (int)(BAR_WIDTH - filled), "", done, total,
            (double)now / (double)GW_US);
}

static void clear_progress(void)
{
    fprintf(stderr, "\r%*s\r", BAR_WIDTH + 50, "");
}

static double peak_rss_mb(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss * 1024 / 1e6;
}

/* Makes a directory where there is none. */
static bool make_one(const char *path)
{
    struct stat status;
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        gw_complain("--out %s: %s", path, strerror(errno));
        return false;
    }
    if (stat(path, &status) == 0 && !S_ISDIR(status.st_mode)) {
        gw_complain("--out %s: %s", path, strerror(ENOTDIR));
        return false;
    }
    return true;
}

/* Makes the directory of run `index` and stores its path. */
static bool make_directory(const char *out, uint32_t index, bool is_only, char path[PATH_SIZE])
{
    if (!make_one(out))
        return false;
    if (is_only) {
        snprintf(path, PATH_SIZE, "%s", out);
        return true;
    }
    snprintf(path, PATH_SIZE, "%s/%03u", out, index);
    return make_one(path);
}

/* All runs of one call: where they write, and what they have found so far. */
struct session {
    const struct gw_sim_args *args;
    struct gw_sweep sweep;
    struct gw_override *overrides; /* of the point that runs: the sweep's, then those of --set */
    uint32_t override_count;
    json_t *results;          /* of all runs, where somebody will ask for them */
    json_t *point;            /* results of the point that runs */
    struct gw_table *table;   /* NULL: the scenario has none */
    struct gw_claims *claims; /* NULL: the scenario has none */
    FILE *timeline;           /* NULL: not wanted */
    bool is_fresh_timeline;   /* a file that was not there before, and has nothing yet */
    uint32_t run_index;
    bool is_only;    /* one point, one seed */
    bool incomplete; /* a run left flows unfinished */
};

/* An old file keeps what it has until a run has ended. */
static bool open_timeline(struct session *session)
{
    const char *name = session->args->timeline;
    session->timeline = fopen(name, "ax");
    session->is_fresh_timeline = session->timeline != NULL;
    if (!session->timeline && errno == EEXIST)
        session->timeline = fopen(name, "a");
    if (session->timeline)
        return true;
    gw_complain("--timeline %s: %s", name, strerror(errno));
    return false;
}

static void close_timeline(const struct session *session)
{
    if (!session->timeline)
        return;
    fclose(session->timeline);
    if (session->is_fresh_timeline)
        remove(session->args->timeline);
}

/* A pipe or a device, which cannot be cut, has nothing to lose. */
static bool empty_timeline(struct session *session)
{
    session->is_fresh_timeline = false;
    if (ftruncate(fileno(session->timeline), 0) == 0 || errno == EINVAL)
        return true;
    gw_complain("--timeline %s: %s", session->args->timeline, strerror(errno));
    return false;
}

/* Reports a finished run in every way that was asked for. Returns an exit status. */
static int report(struct session *session, const struct gw_run_report *run)
{
    const struct gw_sim_args *args = session->args;
    struct gw_sim_totals totals = gw_sim_totals(run->sim);
    if (totals.completed != totals.flows || totals.members_completed != totals.members)
        session->incomplete = true;
    if (args->json || session->table || session->claims) {
        json_t *result = gw_report_json(run);
        if (!result)
            return gw_json_print(result, stdout, 0);
        json_array_append(session->point, result);
        json_array_append_new(session->results, result);
    }
    if (!args->json && !session->table) {
        if (session->run_index)
            putchar('\n');
        gw_report_text(run);
        fflush(stdout);
    }
    char directory[PATH_SIZE];
    if (args->out && (!make_directory(args->out, session->run_index, session->is_only, directory) ||
                      gw_report_files(run, directory) != GW_OK))
        return GW_EXIT_FAILURE;
    if (session->timeline && !empty_timeline(session))
        return GW_EXIT_FAILURE;
    if (session->timeline && !gw_trace_events_write(run, session->timeline, args->timeline))
        return GW_EXIT_FAILURE;
    session->run_index++;
    return GW_EXIT_OK;
}

/* A simulation that is ready to run, and what it was made of. */
struct run {
    struct gw_scenario scenario;
    struct gw_sim_options options;
    struct gw_sim *sim;
};

/* Builds the session's point. The run is to be closed in either case. Returns an exit status. */
static int open_run(struct run *run, const struct session *session, uint64_t seed_offset)
{
    const struct gw_sim_args *args = session->args;
    char why[GW_WHY_MAX];
    run->sim = NULL;
    if (gw_scenario_load(&run->scenario, args->scenario, session->overrides,
                         session->override_count, why)) {
        gw_complain("%s", why);
        return GW_EXIT_USAGE;
    }
    run->options = (struct gw_sim_options){
        .seed = run->scenario.seed + seed_offset,
        .threads = (uint32_t)args->threads,
        .wire = args->wire,
        .pcap_file = session->is_only ? args->pcap : NULL,
        .timeline = args->timeline != NULL,
        .pcap_link = run->scenario.metrics.pcap_link,
        .progress = isatty(STDERR_FILENO) ? show_progress : NULL,
    };
    int error = gw_sim_open(&run->sim, &run->scenario, &run->options, why);
    if (!error)
        return GW_EXIT_OK;
    gw_complain("%s: %s", args->scenario, why);
    return error == GW_ERR_NO_MEMORY ? GW_EXIT_FAILURE : GW_EXIT_USAGE;
}

static void close_run(struct run *run)
{
    gw_sim_close(run->sim);
    gw_scenario_free(&run->scenario);
}

/* Runs the session's point with one seed. */
static int run_once(struct session *session, uint64_t seed_offset)
{
    char why[GW_WHY_MAX];
    struct run run;
    int status = open_run(&run, session, seed_offset);
    if (status == GW_EXIT_OK) {
        double start = gw_seconds();
        int error = gw_sim_run(run.sim, why);
        double wall = gw_seconds() - start;
        if (run.options.progress)
            clear_progress();
        struct gw_run_report finished = {
            .scenario = &run.scenario,
            .sim = run.sim,
            .params = session->overrides,
            .param_count = session->override_count,
            .seed = run.options.seed,
            .host = {.threads = run.options.threads, .wall_s = wall, .peak_rss_mb = peak_rss_mb()},
        };
        if (error)
            gw_complain("%s: %s", session->args->scenario, why);
        status = error ? GW_EXIT_FAILURE : report(session, &finished);
    }
    close_run(&run);
    return status;
}

/* Makes a point the session's. */
static void set_point(struct session *session, uint32_t point)
{
    const struct gw_sweep *sweep = &session->sweep;
    for (uint32_t i = 0; i < sweep->key_count; i++)
        session->overrides[i] = sweep->overrides[point * sweep->key_count + i];
}

/* Builds all points of a sweep once: what is wrong with the last must not cost the others. */
static int check_points(struct session *session)
{
    int status = GW_EXIT_OK;
    uint32_t count = session->sweep.point_count;
    for (uint32_t point = 0; count > 1 && point < count && status == GW_EXIT_OK; point++) {
        struct run run;
        set_point(session, point);
        status = open_run(&run, session, 0);
        close_run(&run);
    }
    return status;
}

/* Runs all seeds of a point. */
static int run_point(struct session *session, uint32_t point)
{
    int status = GW_EXIT_OK;
    set_point(session, point);
    session->point = json_array();
    for (uint64_t k = 0; k < session->args->seeds && status == GW_EXIT_OK; k++)
        status = run_once(session, k);
    if (status == GW_EXIT_OK && session->table &&
        gw_table_add(session->table, point, session->point) != GW_OK)
        status = GW_EXIT_USAGE;
    json_decref(session->point);
    return status;
}

static int run_points(struct session *session)
{
    int status = GW_EXIT_OK;
    for (uint32_t point = 0; point < session->sweep.point_count && status == GW_EXIT_OK; point++)
        status = run_point(session, point);
    return status;
}

/* Opens a file beside the folders of the runs; NULL after a complaint. */
static FILE *open_result(const char *out, const char *name)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "%s/%s", out, name);
    FILE *file = fopen(path, "w");
    if (!file)
        gw_complain("--out %s: %s", path, strerror(errno));
    return file;
}

static bool close_result(FILE *file, const char *name)
{
    bool failed = ferror(file) != 0;
    if (fclose(file) == 0 && !failed)
        return true;
    gw_complain("--out: cannot write %s: %s", name, strerror(errno));
    return false;
}

/* Writes what is of all runs: table.csv and claims.json. Returns an exit status. */
static int write_files(const struct session *session)
{
    const char *out = session->args->out;
    if (session->table) {
        FILE *file = open_result(out, "table.csv");
        if (!file)
            return GW_EXIT_FAILURE;
        gw_table_write(session->table, file);
        if (!close_result(file, "table.csv"))
            return GW_EXIT_FAILURE;
    }
    if (session->claims) {
        FILE *file = open_result(out, "claims.json");
        if (!file)
            return GW_EXIT_FAILURE;
        int status = gw_json_print(gw_claims_json(session->claims), file,
                                   JSON_INDENT(2) | JSON_REAL_PRECISION(GW_REPORT_DIGITS));
        return close_result(file, "claims.json") ? status : GW_EXIT_FAILURE;
    }
    return GW_EXIT_OK;
}

static int print_json(const struct session *session)
{
    size_t i;
    json_t *result;
    json_t *claims = session->claims ? gw_claims_json(session->claims) : NULL;
    json_array_foreach(session->results, i, result)
    {
        if (claims)
            json_object_set(result, "claims", claims);
    }
    json_decref(claims);
    json_t *value = session->is_only ? json_array_get(session->results, 0) : session->results;
    return gw_json_print(json_incref(value), stdout,
                         JSON_INDENT(2) | JSON_REAL_PRECISION(GW_REPORT_DIGITS));
}

/* Prints what is of all runs, judges the claims, and writes files. Returns an exit status. */
static int conclude(struct session *session)
{
    const struct gw_sim_args *args = session->args;
    bool is_narrowed = args->override_count > args->has_seed;
    int status = GW_EXIT_OK, error = GW_EXIT_OK, printed = GW_EXIT_OK;
    if (session->claims)
        status = gw_claims_judge(session->claims, session->results, is_narrowed);
    if (args->json)
        printed = print_json(session);
    else if (session->table)
        gw_table_print(session->table);
    if (session->claims && !args->json)
        gw_claims_print(session->claims);
    if (args->out)
        error = write_files(session);
    return status ? status : error ? error : printed;
}

/* All that happens between opening and closing a session. Returns an exit status. */
static int run_session(struct session *session)
{
    const struct gw_sim_args *args = session->args;
    const struct gw_sweep *sweep = &session->sweep;
    char directory[PATH_SIZE];
    if (args->pcap && !session->is_only) {
        gw_complain("--pcap: needs a single run, not a sweep or several seeds");
        return GW_EXIT_USAGE;
    }
    if (args->timeline && !session->is_only) {
        gw_complain("--timeline: needs a single run, not a sweep or several seeds");
        return GW_EXIT_USAGE;
    }
    if (args->timeline && !open_timeline(session))
        return GW_EXIT_USAGE;
    if (sweep->claim_count) {
        session->claims = gw_claims_open(sweep);
        if (!session->claims)
            return GW_EXIT_USAGE;
    }
    int status = check_points(session);
    if (status != GW_EXIT_OK)
        return status;
    /* Before the work, so that nothing is lost when the results have nowhere to go. */
    if (args->out && !make_directory(args->out, 0, true, directory))
        return GW_EXIT_USAGE;
    if (sweep->column_count && (args->out || !args->json))
        session->table = gw_table_open(sweep);
    status = run_points(session);
    if (status == GW_EXIT_OK)
        status = conclude(session);
    if (status == GW_EXIT_OK && session->incomplete) {
        gw_complain("%s: the run ended with flows or jobs unfinished", args->scenario);
        status = GW_EXIT_FAILURE;
    }
    return status;
}

/* Returns an exit status; the session is to be closed in either case. */
static int open_session(struct session *session, const struct gw_sim_args *args)
{
    char why[GW_WHY_MAX];
    struct gw_sweep *sweep = &session->sweep;
    *session = (struct session){.args = args, .results = json_array()};
    if (gw_sweep_load(sweep, args->scenario, args->overrides, args->override_count, why)) {
        gw_complain("%s", why);
        return GW_EXIT_USAGE;
    }
    session->is_only = sweep->point_count == 1 && args->seeds == 1;
    session->override_count = sweep->key_count + args->override_count;
    session->overrides = gw_memory_zeroed(session->override_count, sizeof(*session->overrides));
    for (uint32_t i = 0; i < args->override_count; i++)
        session->overrides[sweep->key_count + i] = args->overrides[i];
    return GW_EXIT_OK;
}

static void close_session(struct session *session)
{
    close_timeline(session);
    gw_table_close(session->table);
    gw_claims_close(session->claims);
    json_decref(session->results);
    free(session->overrides);
    gw_sweep_free(&session->sweep);
}

/* Does something with a session. Returns an exit status. */
static int in_session(const struct gw_sim_args *args, int (*work)(struct session *session))
{
    struct session session;
    int status = open_session(&session, args);
    if (status == GW_EXIT_OK)
        status = work(&session);
    close_session(&session);
    return status;
}

int gw_sim_runs(const struct gw_sim_args *args)
{
    return in_session(args, run_session);
}

int gw_sim_check(const struct gw_sim_args *args)
{
    return in_session(args, check_points);
}
