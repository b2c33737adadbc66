/*
 * bfcstat serve: answers Prometheus's requests for the metrics of all jobs over HTTP.
 *
 * One thread does everything, because the functions that read shared-memory segments may run in
 * only one thread at a time. Clients cannot keep this thread busy by asking often, because each
 * answer is sent to all who ask within a second or more after it was made. Clients cannot take all
 * connections either (guests.h), nor all memory, because the size of the answers that they have not
 * received yet is bounded.
 */
#include <ctype.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/numbers.h"
#include "tools/bfcstat/bfcstat.h"
#include "tools/bfcstat/guests.h"
#include "tools/bfcstat/identity.h"
#include "tools/bfcstat/tally.h"

/* memory of a connection for the request's first line and headers */
#define MOST_CONNECTION_BYTES 16384u
#define IDLE_SECONDS 10u
#define MOST_FILES (MOST_SOCKETS + MOST_KEPT + 64u)

/* How long an answer with the metrics is sent to all who ask, before a new one is made: FRESH_NS,
 * or FRESH_TIMES the time that making the answer took, whichever is longer. */
#define FRESH_NS UINT64_C(1000000000)
#define FRESH_TIMES 4u

/* If all answers in memory together are larger than this when another one is made, clients have
 * been too slow to receive them: all connections on which an answer is being sent are shut down, so
 * that the memory of the answers is freed. */
#define MOST_ANSWER_BYTES ((size_t)128 << 20)

#define TEXT_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define OPEN_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* An answer with the metrics, which may be sent over several connections at a time. libmicrohttpd
 * frees the answer's text when MHD_destroy_response was called and no connection sends it any more.
 */
struct answer {
    struct MHD_Response *response; /* the answer; NULL: none in this format was made yet */
    uint64_t good_until_ns;
};

struct exporter {
    const char *folder;
    struct identities identities;
    struct tally_book *tallies;
    struct answer answers[2]; /* indexed by enum metrics_format */
    struct guests guests;
};

static volatile sig_atomic_t over;

static void stop_serving(int signal_number) {
    (void)signal_number;
    over = 1;
}

/*
 * Reads all shared-memory segments and writes the metrics of all jobs. False: the folder of
 * segments cannot be read, or there is no memory; errno says which. The folder is opened each time,
 * because it may have been removed and made again: a descriptor of the removed folder would show no
 * segments.
 */
static bool write_metrics(struct exporter *exporter, enum metrics_format format, FILE *stream) {
    struct findings findings = {0};
    int directory = bfc_segment_directory_open(exporter->folder);
    tally_show(exporter->tallies, &findings);
    bool good = directory >= 0 && find_figures(directory, &findings) && find_gpus(&findings) &&
                identify_jobs(&exporter->identities, KUBELET_LOGS, &findings) &&
                show_jobs_metrics(&findings, format, stream);
    int reason = errno;
    free_findings(&findings);
    if (directory >= 0)
        close(directory);
    errno = reason;
    return good;
}

static struct MHD_Response *with_headers(struct MHD_Response *response, const char *type) {
    if (response) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    }
    return response;
}

/* How many bytes the texts of all answers in memory have. Each text's size is stored in front of
 * the text, because free_text is called with nothing but the text's address. */
static size_t answers_bytes;

static void free_text(void *text) {
    size_t *size = (size_t *)text - 1;
    answers_bytes -= *size;
    free(size);
}

static void forget_answer(struct answer *answer) {
    if (answer->response)
        MHD_destroy_response(answer->response);
    answer->response = NULL;
}

/* Returns a block from malloc that holds the size of the metrics' text, and behind it the text;
 * NULL: errno says why. */
static size_t *write_text(struct exporter *exporter, enum metrics_format format) {
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        return NULL;
    bool good =
        fwrite(&size, sizeof size, 1, stream) == 1 && write_metrics(exporter, format, stream);
    int reason = errno;
    if (fclose(stream) == 0 && good)
        return memcpy(text, &(size_t){size - sizeof size}, sizeof size);
    free(text);
    errno = good ? ENOMEM : reason;
    return NULL;
}

/* Makes a new answer with the present metrics in this format, in place of the old one. False: errno
 * says why. */
static bool make_answer(struct exporter *exporter, enum metrics_format format) {
    struct answer *answer = &exporter->answers[format];
    uint64_t begun = bfc_now_ns();
    forget_answer(answer);
    if (answers_bytes > MOST_ANSWER_BYTES)
        guests_turn_out_served(&exporter->guests);
    size_t *size = write_text(exporter, format);
    if (!size)
        return false;
    answers_bytes += *size;
    answer->response =
        with_headers(MHD_create_response_from_buffer_with_free_callback(*size, size + 1, free_text),
                     format == METRICS_OPEN ? OPEN_TYPE : TEXT_TYPE);
    if (!answer->response) {
        free_text(size + 1);
        errno = ENOMEM;
    }
    uint64_t now = bfc_now_ns();
    answer->good_until_ns = now + bfc_max(FRESH_NS, FRESH_TIMES * (now - begun));
    return answer->response;
}

static enum MHD_Result send_words(struct MHD_Connection *connection, unsigned status,
                                  const char *words) {
    struct MHD_Response *response =
        with_headers(MHD_create_response_from_buffer(strlen(words), (char *)(uintptr_t)words,
                                                     MHD_RESPMEM_MUST_COPY),
                     "text/plain; charset=utf-8");
    if (!response)
        return MHD_NO;
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static void note_served(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    if (info && info->socket_context)
        ((struct guest *)info->socket_context)->served = true;
}

static enum MHD_Result send_metrics(struct exporter *exporter, struct MHD_Connection *connection) {
    const char *accepted =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
    bool open = accepted && strstr(accepted, "application/openmetrics-text");
    enum metrics_format format = open ? METRICS_OPEN : METRICS_PROMETHEUS;
    const struct answer *answer = &exporter->answers[format];
    bool fresh = answer->response && bfc_now_ns() < answer->good_until_ns;
    if (!fresh && !make_answer(exporter, format)) {
        char words[256];
        snprintf(words, sizeof words, "%.128s: %s\n", exporter->folder, strerror(errno));
        return send_words(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, words);
    }
    note_served(connection);
    return MHD_queue_response(connection, MHD_HTTP_OK, answer->response);
}

static enum MHD_Result answer_request(void *context, struct MHD_Connection *connection,
                                      const char *url, const char *method, const char *version,
                                      const char *data, size_t *data_size, void **begun) {
    static int begin;
    (void)version;
    (void)data;
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return send_words(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET and HEAD are accepted\n");
    /* the request is not complete: this call brings its headers or a part of its body */
    if (!*begun || *data_size) {
        *begun = &begin;
        *data_size = 0;
        return MHD_YES;
    }
    if (strcmp(url, "/metrics") == 0)
        return send_metrics(context, connection);
    if (strcmp(url, "/") == 0)
        return send_words(connection, MHD_HTTP_OK, "bfcstat " BFC_VERSION ": /metrics\n");
    return send_words(connection, MHD_HTTP_NOT_FOUND, "not found; /metrics is there\n");
}

static void note_guest(void *context, struct MHD_Connection *connection, void **noted,
                       enum MHD_ConnectionNotificationCode code) {
    struct exporter *exporter = context;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (code == MHD_CONNECTION_NOTIFY_STARTED && info)
        *noted = guests_add(&exporter->guests, info->connect_fd);
    else if (code == MHD_CONNECTION_NOTIFY_CLOSED && *noted)
        guests_remove(*noted);
}

static int refuse_address(const char *listen, const char *why) {
    fprintf(stderr,
            "bfcstat: --listen=%s: %s; expected ADDRESS:PORT, such as 127.0.0.1:9420, [::1]:9420 "
            "or :9420 for all addresses\n",
            listen, why);
    return MISUSED;
}

/* Splits the text of --listen, ADDRESS:PORT, in which an IPv6 address stands in brackets, and looks
 * the address up. Returns SHOWN, or another exit status after a message. */
static int find_addresses(const char *listen, struct addrinfo **found) {
    char host[256];
    const char *colon = strrchr(listen, ':');
    size_t length = colon ? (size_t)(colon - listen) : 0;
    if (!colon || length >= sizeof host || strchr(colon, ']'))
        return refuse_address(listen, "no port");
    bool brackets = length >= 2 && listen[0] == '[' && listen[length - 1] == ']';
    snprintf(host, sizeof host, "%.*s", (int)length - 2 * brackets, listen + brackets);
    if (!brackets && strchr(host, ':'))
        return refuse_address(listen, "an IPv6 address needs brackets");
    struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    if (strcmp(host, "localhost") == 0) /* not looked up, because /etc/hosts may lack this name */
        strcpy(host, "127.0.0.1");
    char *end;
    if (!isdigit((unsigned char)colon[1]) || strtoul(colon + 1, &end, 10) > 65535 || *end)
        return refuse_address(listen, "no such port");
    int error = getaddrinfo(host[0] ? host : NULL, colon + 1, &hints, found);
    return error ? refuse_address(listen, gai_strerror(error)) : SHOWN;
}

static struct MHD_Daemon *listen_on(struct exporter *exporter, const struct addrinfo *address) {
    unsigned flags = MHD_USE_EPOLL | (address->ai_family == AF_INET6 ? MHD_USE_DUAL_STACK : 0u);
    guests_begin(&exporter->guests);
    return MHD_start_daemon(flags, 0, NULL, NULL, answer_request, exporter, MHD_OPTION_SOCK_ADDR,
                            address->ai_addr, MHD_OPTION_CONNECTION_LIMIT, MOST_SOCKETS,
                            MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS,
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MOST_CONNECTION_BYTES,
                            MHD_OPTION_NOTIFY_CONNECTION, note_guest, exporter, MHD_OPTION_END);
}

/* Starts the HTTP server. To listen on all addresses (an empty ADDRESS), it uses one IPv6 socket,
 * which also accepts IPv4; if the system has no IPv6, an IPv4 socket. NULL: errno says why. */
static struct MHD_Daemon *start_daemon(struct exporter *exporter, const char *listen,
                                       const struct addrinfo *addresses) {
    const struct addrinfo *six = listen[0] == ':' ? addresses : NULL;
    while (six && six->ai_family != AF_INET6)
        six = six->ai_next;
    struct MHD_Daemon *daemon = six ? listen_on(exporter, six) : NULL;
    if (daemon || (six && errno == EADDRINUSE))
        return daemon;
    return listen_on(exporter, addresses);
}

static void say_where(struct MHD_Daemon *daemon, const char *listen) {
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
    fprintf(stderr, "bfcstat: http://%.*s:%u/metrics\n", (int)(strrchr(listen, ':') - listen),
            listen, info ? info->port : 0);
}

/* Raises the process's limit of open files if it is too low for MOST_SOCKETS connections and
 * MOST_KEPT shared-memory segments. Otherwise the server would stop accepting connections when it
 * reaches the limit. False: a message was printed. */
static bool may_open_enough(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= MOST_FILES)
        return true;
    limit.rlim_cur = bfc_min(limit.rlim_max, MOST_FILES);
    if (limit.rlim_cur == MOST_FILES && setrlimit(RLIMIT_NOFILE, &limit) == 0)
        return true;
    fprintf(stderr, "bfcstat: serve needs %u open files; the limit (ulimit -Hn) is %llu\n",
            MOST_FILES, (unsigned long long)limit.rlim_max);
    return false;
}

/* Waits, for a second at most, until a client sends something or the folder of shared-memory
 * segments changes, and then handles both. */
static void wait_and_serve(struct exporter *exporter, struct MHD_Daemon *daemon) {
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
    struct pollfd asking[] = {{.fd = info ? info->epoll_fd : -1, .events = POLLIN},
                              {.fd = tally_descriptor(exporter->tallies), .events = POLLIN}};
    MHD_UNSIGNED_LONG_LONG until_timeout = 1000;
    MHD_get_timeout(daemon, &until_timeout);
    poll(asking, 2, (int)bfc_min(until_timeout, 1000));
    tally_follow(exporter->tallies);
    MHD_run(daemon);
    guests_turn_out_old(&exporter->guests);
}

static int serve_requests(struct exporter *exporter, const char *listen,
                          const struct addrinfo *addresses) {
    struct MHD_Daemon *daemon = start_daemon(exporter, listen, addresses);
    if (!daemon) {
        fprintf(stderr, "bfcstat: --listen=%s: %s\n", listen, strerror(errno));
        return REFUSED;
    }
    signal(SIGPIPE, SIG_IGN);
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = stop_serving}, NULL);
    sigaction(SIGINT, &(struct sigaction){.sa_handler = stop_serving}, NULL);
    exporter->tallies = tally_begin(exporter->folder);
    if (exporter->tallies)
        say_where(daemon, listen);
    else
        fputs("bfcstat: no memory\n", stderr);
    while (exporter->tallies && !over)
        wait_and_serve(exporter, daemon);
    tally_end(exporter->tallies);
    MHD_stop_daemon(daemon);
    return SHOWN;
}

int run_serve(const struct request *request, int directory) {
    static struct exporter exporter;
    struct addrinfo *addresses;
    (void)directory;
    exporter.folder = request->directory;
    int status = find_addresses(request->listen, &addresses);
    if (status != SHOWN)
        return status;
    status = may_open_enough() ? serve_requests(&exporter, request->listen, addresses) : REFUSED;
    freeaddrinfo(addresses);
    for (int i = 0; i < 2; i++)
        forget_answer(&exporter.answers[i]);
    free_identities(&exporter.identities);
    return status;
}
