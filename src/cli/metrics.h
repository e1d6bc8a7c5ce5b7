/*
 * Numbers of a daemon for Prometheus, over HTTP: GET /metrics.
 *
 * A thread of its own answers, from a snapshot that the daemon's loop sets now and then, so that
 * whoever asks never holds up a packet. With a token only those who show it are answered
 * (Authorization: Bearer, RFC 6750). Others learn of no job and no key: what jobs and tenants count
 * is added up over all.
 */
#ifndef GW_CLI_METRICS_H
#define GW_CLI_METRICS_H

#include <jansson.h>

struct gw_metrics;

/*
 * Listens at HOST:PORT; `token` is NULL where anybody may ask. Returns 0, or GW_ERR_* with `error`
 * filled (GW_NET_ERROR_MAX bytes). Signals that the caller has blocked stay blocked in the thread.
 */
int gw_metrics_open(const char *listen, const char *token, struct gw_metrics **result, char *error);
void gw_metrics_close(struct gw_metrics *metrics);

/*
 * The snapshot from now on. Every number at a path a, b of `status` is called prefix_a_b; those of
 * the objects in a list have their first member, a text, as a label, or, where there is no token,
 * are added up without `epoch`; those of a list of numbers have the label `class`. Other texts are
 * left out.
 */
void gw_metrics_set(struct gw_metrics *metrics, const char *prefix, json_t *status);

#endif
