/* The config of a daemon: keys by table, the key files, and what must hold; see daemon.h. */
#include "cli/daemon_impl.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cli/cli.h"
#include "config/schema.h"
#include "net/attach/groups.h"
#include "net/roles/overlay_server.h"

enum {
    OTHERS_MAX = 8,
};

#define NO_GROUPS "none" /* as a config says it */

static struct gw_daemon_common *common_of(struct gw_daemon *daemon)
{
    return (struct gw_daemon_common *)(void *)daemon->cfg;
}

int gw_daemon_check_range(const char *key, uint64_t value, uint64_t low, uint64_t high, char *error)
{
    if (value >= low && value <= high)
        return GW_OK;
    return gw_net_fail(error, GW_ERR_RANGE, "%s: expected %llu to %llu", key,
                       (unsigned long long)low, (unsigned long long)high);
}

int gw_daemon_check_address(const char *key, const char *text, char *error)
{
    struct gw_sock_addr addr;
    char why[GW_NET_ERROR_MAX];
    if (!*text || gw_sock_addr_resolve(text, &addr, why) == GW_OK)
        return GW_OK;
    return gw_net_fail(error, GW_ERR_INVALID, "%s: %.128s", key, why);
}

/* Says how a key is called now that had another name once. */
static int refuse_old_names(const struct gw_document *document)
{
    static const struct {
        const char *old, *now;
    } names[] = {
        {"keys", "key_files"},      {"uplink", "switch"},     {"queue_bytes", "queue.capacity"},
        {"pcn_floor", "pcn.floor"}, {"pcn_hold", "pcn.hold"}, {"pcn_share", "pcn.share"},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct gw_doc_value *value = gw_doc_value_get(document->root, names[i].old);
        if (value)
            return gw_document_error(document, value, GW_ERR_UNKNOWN, "is called %s now",
                                     names[i].now);
    }
    return GW_OK;
}

/* Keys that no table has: those of every daemon, and the sections of this one. */
static void list_others(const struct gw_daemon_kind *kind, const char *others[OTHERS_MAX])
{
    uint32_t count = 0;
    others[count++] = "key_files";
    others[count++] = "switch_keys";
    for (const char *const *section = kind->sections; section && *section; section++) {
        GW_ASSERT(count < OTHERS_MAX - 1);
        others[count++] = *section;
    }
    others[count] = NULL;
}

/* Whether jobs with the key could have the numbers of jobs with another one before it. */
static bool is_mistakable(const struct gw_daemon *daemon, const struct gw_key *key)
{
    for (const struct gw_key *other = daemon->keys; other < key; other++)
        if (other->id != key->id && gw_key_has_job(key, gw_key_job(other, "")))
            return true;
    return false;
}

/* Adds the keys of a list of files. */
static int read_list(struct gw_daemon *daemon, const struct gw_document *document,
                     const struct gw_doc_value *list)
{
    char error[GW_NET_ERROR_MAX];
    if (list->kind != GW_DOC_VALUE_LIST || list->count == 0 || list->count > GW_DAEMON_KEYS_MAX)
        return gw_document_error(document, list, GW_ERR_INVALID,
                                 "expected a list of 1 to %d key files", GW_DAEMON_KEYS_MAX);
    for (uint32_t i = 0; i < list->count; i++) {
        const char *path = gw_schema_text(document, list->items[i]);
        if (!path)
            return GW_ERR_INVALID;
        struct gw_key *key = &daemon->keys[daemon->key_count++];
        if (gw_key_from_file(path, gw_daemon_common(daemon)->insecure_key_files, key, error) != 0)
            return gw_document_error(document, list->items[i], GW_ERR_INVALID, "%s", error);
        if (is_mistakable(daemon, key))
            return gw_document_error(document, list->items[i], GW_ERR_INVALID,
                                     "%s: by chance its jobs could have the numbers of jobs with "
                                     "another key that is listed: make a new one",
                                     path);
        gw_daemon_log(daemon, "key %016llx is that of %s", (unsigned long long)key->id, path);
    }
    return GW_OK;
}

/*
 * Reads `switch_keys` and `key_files`. Without keys of hosts anybody may attach as one; without
 * those of switches nobody as a switch, unless there are no keys at all.
 */
static int read_keys(struct gw_daemon *daemon, const struct gw_document *document)
{
    const struct gw_doc_value *switches = gw_doc_value_get(document->root, "switch_keys");
    const struct gw_doc_value *hosts = gw_doc_value_get(document->root, "key_files");
    daemon->is_open = !hosts;
    const struct gw_daemon_common *common = gw_daemon_common(daemon);
    if (!hosts && (common->authenticate || common->encrypt))
        return gw_document_error(
            document,
            gw_doc_value_get(document->root, common->encrypt ? "encrypt" : "authenticate"),
            GW_ERR_INVALID, "needs `key_files`");
    int code = switches ? read_list(daemon, document, switches) : GW_OK;
    daemon->switch_key_count = daemon->key_count;
    if (code || hosts)
        return code ? code : read_list(daemon, document, hosts);
    gw_key_from_text("", 0, &daemon->keys[daemon->key_count++]);
    if (!switches)
        daemon->switch_key_count = daemon->key_count;
    return GW_OK;
}

/* A port alone is one of the loopback: who wants others to ask says by which address. */
static void spell_metrics(struct gw_daemon_common *common)
{
    char port[GW_PARAM_TEXT_MAX];
    if (!*common->metrics || common->metrics[strspn(common->metrics, "0123456789")] != '\0')
        return;
    snprintf(port, sizeof(port), "%s", common->metrics);
    snprintf(common->metrics, sizeof(common->metrics), "127.0.0.1:%.16s", port);
}

/* Reads the token of those who ask for the metrics; the file's last line may end. */
static int read_token(struct gw_daemon *daemon, const struct gw_document *document)
{
    const struct gw_daemon_common *common = gw_daemon_common(daemon);
    char *token = daemon->metrics_token, error[GW_NET_ERROR_MAX];
    if (!*common->metrics_token_file)
        return GW_OK;
    const struct gw_doc_value *value = gw_doc_value_get(document->root, "metrics_token_file");
    int size = gw_key_read(common->metrics_token_file, common->insecure_key_files, token,
                           GW_DAEMON_TOKEN_MAX - 1, error);
    if (size < 0)
        return gw_document_error(document, value, GW_ERR_INVALID, "%s", error);
    token[strcspn(token, "\r\n")] = '\0';
    return *token ? GW_OK
                  : gw_document_error(document, value, GW_ERR_INVALID, "its first line is empty");
}

/* Groups, one for each job of each daemon, of the family that we listen by. */
static int check_multicast(const struct gw_daemon_common *common, uint32_t daemons, char *error)
{
    struct gw_sock_addr group, listen, last;
    if (!*common->multicast || strcmp(common->multicast, NO_GROUPS) == 0)
        return GW_OK;
    int code = gw_daemon_check_address("multicast", common->multicast, error);
    if (!code)
        code = gw_sock_addr_resolve(common->multicast, &group, error);
    if (!code)
        code = gw_sock_addr_resolve(common->listen, &listen, error);
    if (code)
        return code;
    last = group;
    gw_sock_addr_advance(&last, daemons * common->jobs - 1);
    if (!gw_sock_addr_is_multicast(&group) || group.storage.ss_family != listen.storage.ss_family)
        return gw_net_fail(error, GW_ERR_INVALID,
                           "multicast: %s is no multicast address of the family of `listen`",
                           common->multicast);
    if (!gw_sock_addr_is_multicast(&last))
        return gw_net_fail(error, GW_ERR_INVALID,
                           "multicast: behind %s there are no groups for %u jobs",
                           common->multicast, daemons * common->jobs);
    if ((uint32_t)gw_sock_addr_port(&group) - gw_sock_addr_port(&listen) < daemons)
        return gw_net_fail(error, GW_ERR_INVALID,
                           "multicast: its port must not be one of `listen`");
    if (common->encrypt)
        return gw_net_fail(error, GW_ERR_INVALID,
                           "multicast: encryption is between two; with `encrypt` nothing can be "
                           "multicast");
    return common->authenticate ? gw_net_fail(error, GW_ERR_INVALID,
                                              "multicast: authentication is between two; with "
                                              "`authenticate` nothing can be multicast")
                                : GW_OK;
}

/* Chooses groups where the config says nothing of them: where no code is asked for and all hosts
 * have one key or none, so that a result tells no tenant what is another's. */
static void choose_groups(struct gw_daemon *daemon, uint32_t number)
{
    struct gw_daemon_common *common = common_of(daemon);
    struct gw_sock_addr group, listen;
    char error[GW_NET_ERROR_MAX];
    bool is_one_tenant = daemon->key_count - daemon->switch_key_count <= 1;
    bool may = is_one_tenant && !common->authenticate && !common->encrypt &&
               daemon->kind->may_multicast && daemon->kind->may_multicast(daemon->cfg);
    bool is_chosen = *common->multicast != '\0';
    if (strcmp(common->multicast, NO_GROUPS) == 0)
        *common->multicast = '\0';
    if (is_chosen || !may || gw_sock_addr_resolve(common->listen, &listen, error) != GW_OK)
        return;
    gw_sock_addr_set_port(&listen, (uint16_t)(gw_sock_addr_port(&listen) - number));
    group = gw_groups_choose(&listen, daemon->row_count, gw_daemon_address(daemon), common->jobs);
    gw_sock_addr_format(&group, common->multicast, sizeof(common->multicast));
}

/* An option of the IPv4 header needs one. */
static int check_signals(const struct gw_daemon_common *common, char *error)
{
    struct gw_sock_addr listen;
    if (common->signals == GW_DAEMON_SIGNALS_DSCP)
        return GW_OK;
    int code = gw_sock_addr_resolve(common->listen, &listen, error);
    if (!code && gw_sock_addr_is_v6(&listen))
        code = gw_net_fail(error, GW_ERR_INVALID,
                           "signals: an option is one of IPv4, and %s is an address of IPv6",
                           common->listen);
    return code;
}

/* A row of daemons has a row of metrics, and sockets for --status where these lie by default. */
static int check_row(const struct gw_daemon *daemon, char *error)
{
    const struct gw_daemon_common *common = gw_daemon_common(daemon);
    const uint32_t count = daemon->row_count;
    struct gw_sock_addr metrics;
    if (count == 1)
        return GW_OK;
    if (!daemon->kind->may_be_many || !daemon->kind->may_be_many(daemon->cfg))
        return gw_net_fail(error, GW_ERR_INVALID,
                           "listen: %s are several ports, which only a server with a switch of its "
                           "own can have",
                           daemon->row);
    if (count > GW_DAEMON_ROW_MAX)
        return gw_net_fail(error, GW_ERR_RANGE, "listen: %s are %u ports, and at most %d can be",
                           daemon->row, count, GW_DAEMON_ROW_MAX);
    if (*common->status)
        return gw_net_fail(error, GW_ERR_INVALID,
                           "status: %.64s is one path, and there are %u servers", common->status,
                           count);
    if (*common->metrics && gw_sock_addr_resolve(common->metrics, &metrics, error) == GW_OK &&
        gw_sock_addr_port(&metrics) + count - 1 > UINT16_MAX)
        return gw_net_fail(error, GW_ERR_RANGE,
                           "metrics: behind %s there are no ports for %u servers", common->metrics,
                           count);
    return GW_OK;
}

static int check_listen(const struct gw_daemon *daemon, char *error)
{
    const char *listen = gw_daemon_common(daemon)->listen;
    if (gw_sock_addr_row(listen))
        return gw_daemon_check_address("listen", listen, error);
    return gw_net_fail(error, GW_ERR_INVALID, "listen: not HOST:PORT%s: %.128s",
                       daemon->kind->may_be_many ? " or HOST:FIRST-LAST" : "", listen);
}

static int check_common(const struct gw_daemon *daemon, char *error)
{
    const struct gw_daemon_common *common = gw_daemon_common(daemon);
    int code = gw_daemon_check_range("values", common->values, 16, 16000, error);
    if (!code)
        code = gw_daemon_check_range("aggregators", common->aggregators, 1, 65536, error);
    if (!code)
        code = gw_daemon_check_range("jobs", common->jobs, 1, GW_OVERLAY_JOBS_MAX, error);
    if (!code)
        code = gw_daemon_check_range("job_share", common->job_share, 0,
                                     common->aggregators / common->jobs, error);
    if (!code)
        code = check_listen(daemon, error);
    if (!code)
        code = gw_daemon_check_address("metrics", common->metrics, error);
    if (!code)
        code = check_signals(common, error);
    if (!code)
        code = check_row(daemon, error);
    return code ? code : check_multicast(common, daemon->row_count, error);
}

static int check(const struct gw_daemon *daemon, const struct gw_document *document)
{
    char error[GW_NET_ERROR_MAX];
    int code = check_common(daemon, error);
    if (!code)
        code = daemon->kind->check(daemon->cfg, error);
    return code ? gw_schema_blame(document, document->root, code, error) : GW_OK;
}

/* Who may ask a daemon need not be able to read its secrets. */
static int read_secrets(struct gw_daemon *daemon, const struct gw_document *document)
{
    int code = read_keys(daemon, document);
    return code ? code : read_token(daemon, document);
}

/* The config's `listen` is a row from here on, and one of it is what the daemon has. */
static void take_row(struct gw_daemon *daemon)
{
    const char *listen = gw_daemon_common(daemon)->listen;
    uint32_t count = gw_sock_addr_row(listen);
    memcpy(daemon->row, listen, sizeof(daemon->row));
    daemon->row_count = count ? count : 1; /* what is none is named when it is checked */
    if (count)
        gw_sock_addr_row_at(daemon->row, 0, common_of(daemon)->listen, GW_PARAM_TEXT_MAX);
}

void gw_daemon_listen_at(struct gw_daemon *daemon, uint32_t number)
{
    struct gw_daemon_common *common = common_of(daemon);
    if (daemon->row_count > 1)
        gw_sock_addr_row_at(daemon->row, number, common->listen, sizeof(common->listen));
}

void gw_daemon_settle(struct gw_daemon *daemon, uint32_t number)
{
    struct gw_daemon_common *common = common_of(daemon);
    char metrics[GW_PARAM_TEXT_MAX], error[GW_NET_ERROR_MAX];
    struct gw_sock_addr group;
    gw_daemon_listen_at(daemon, number);
    if (*common->metrics) {
        gw_sock_addr_row_at(common->metrics, number, metrics, sizeof(metrics));
        memcpy(common->metrics, metrics, sizeof(metrics));
    }
    if (number && *common->multicast && strcmp(common->multicast, NO_GROUPS) != 0 &&
        gw_sock_addr_resolve(common->multicast, &group, error) == GW_OK) {
        gw_sock_addr_advance(&group, number * common->jobs);
        gw_sock_addr_format(&group, common->multicast, sizeof(common->multicast));
    }
    choose_groups(daemon, number);
}

int gw_daemon_load(struct gw_daemon *daemon, const char *file, bool asks)
{
    const char *others[OTHERS_MAX];
    const struct gw_schema schema = {
        .parts = {{daemon->kind->table, daemon->cfg}}, .part_count = 1, .others = others};
    struct gw_document document;
    char why[GW_WHY_MAX];
    if (gw_key_setup() != 0) {
        gw_complain("the system gives no random numbers");
        return GW_EXIT_FAILURE;
    }
    list_others(daemon->kind, others);
    int code = gw_document_load(&document, file, NULL, 0, why);
    if (!code)
        code = refuse_old_names(&document);
    if (!code)
        code = gw_schema_read(&document, document.root, &schema);
    if (!code)
        code = daemon->kind->read ? daemon->kind->read(&document, daemon->cfg) : GW_OK;
    if (!code)
        spell_metrics(common_of(daemon));
    if (!code)
        take_row(daemon);
    if (!code)
        code = check(daemon, &document);
    if (!code && !asks)
        code = read_secrets(daemon, &document);
    gw_document_free(&document);
    if (code)
        gw_complain("%s", why);
    return code ? GW_EXIT_USAGE : GW_EXIT_OK;
}
