/* The socket at which a daemon answers `--status`; see status_socket.h. */
#include "cli/status_socket.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "net/net_error.h"

enum {
    ASKERS_MAX = 16,
};

/* The folder of a socket whose path nobody has named; false: the path is too long. */
static bool default_folder(const struct gw_status_socket *cfg, char folder[GW_STATUS_PATH_MAX])
{
    const char *service = getenv("RUNTIME_DIRECTORY"), *user = getenv("XDG_RUNTIME_DIR");
    int size;
    if (service && *service)
        size = snprintf(folder, GW_STATUS_PATH_MAX, "%.*s", (int)strcspn(service, ":"), service);
    else if (geteuid() == 0)
        size = snprintf(folder, GW_STATUS_PATH_MAX, "/run/gradwire-%s", cfg->kind);
    else if (user && *user)
        size = snprintf(folder, GW_STATUS_PATH_MAX, "%s/gradwire", user);
    else
        size = snprintf(folder, GW_STATUS_PATH_MAX, "/tmp/gradwire-%u", (unsigned)geteuid());
    return size < GW_STATUS_PATH_MAX;
}

/* Where it is; false: the path is too long. `folder` is empty where the config names the path. */
static bool address_of(const struct gw_status_socket *cfg, struct sockaddr_un *address,
                       char folder[GW_STATUS_PATH_MAX])
{
    char *path = address->sun_path;
    int size;
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    *folder = '\0';
    if (*cfg->path)
        size = snprintf(path, GW_STATUS_PATH_MAX, "%s", cfg->path);
    else if (default_folder(cfg, folder))
        size = snprintf(path, GW_STATUS_PATH_MAX, "%s/%s-%s", folder, cfg->kind, cfg->listen);
    else
        return false;
    return size < GW_STATUS_PATH_MAX;
}

/* Makes the folder, if it is not there; it must be ours, and no link. */
static int claim_folder(const char *folder, char *error)
{
    struct stat status;
    if (mkdir(folder, S_IRWXU) != 0 && errno != EEXIST)
        return gw_net_fail(error, GW_ERR_SYSTEM, "cannot make the folder %s for the status: %s",
                           folder, strerror(errno));
    if (lstat(folder, &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != geteuid() ||
        status.st_mode & (S_IWGRP | S_IWOTH))
        return gw_net_fail(error, GW_ERR_SYSTEM,
                           "the status cannot be in %s: it is not a folder of ours alone", folder);
    return GW_OK;
}

static int open_socket(int flags)
{
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
}

static bool has_answer(const struct sockaddr_un *address)
{
    int fd = open_socket(0);
    bool has = fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0;
    if (fd >= 0)
        close(fd);
    return has;
}

/* Removes what an earlier life has left there: a socket at which nobody answers. */
static int clear_place(const struct sockaddr_un *address, char *error)
{
    struct stat status;
    const char *path = address->sun_path;
    if (lstat(path, &status) != 0)
        return GW_OK;
    if (!S_ISSOCK(status.st_mode))
        return gw_net_fail(error, GW_ERR_SYSTEM, "the status cannot be at %s: it is no socket",
                           path);
    if (has_answer(address))
        return gw_net_fail(error, GW_ERR_SYSTEM,
                           "the status cannot be at %s: another one is running", path);
    if (unlink(path) != 0)
        return gw_net_fail(error, GW_ERR_SYSTEM, "cannot remove the old %s: %s", path,
                           strerror(errno));
    return GW_OK;
}

int gw_status_socket_open(const struct gw_status_socket *cfg, char path[GW_STATUS_PATH_MAX],
                          char *error)
{
    struct sockaddr_un address;
    char folder[GW_STATUS_PATH_MAX];
    if (!address_of(cfg, &address, folder))
        return gw_net_fail(error, GW_ERR_INVALID, "the path for the status is longer than %d bytes",
                           GW_STATUS_PATH_MAX - 1);
    int code = *folder ? claim_folder(folder, error) : GW_OK;
    if (!code)
        code = clear_place(&address, error);
    if (code)
        return code;
    int fd = open_socket(SOCK_NONBLOCK);
    /* The mode of a socket that is not bound yet is that of its path: there is no time at which
     * others may connect. */
    if (fd < 0 || fchmod(fd, S_IRUSR | S_IWUSR) != 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(fd, ASKERS_MAX) != 0) {
        code = gw_net_fail(error, GW_ERR_SYSTEM, "cannot open the status socket %s: %s",
                           address.sun_path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return code;
    }
    memcpy(path, address.sun_path, GW_STATUS_PATH_MAX);
    return fd;
}

int gw_status_socket_connect(const struct gw_status_socket *cfg)
{
    struct sockaddr_un address;
    char folder[GW_STATUS_PATH_MAX];
    int fd = address_of(cfg, &address, folder) ? open_socket(0) : -1;
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}
