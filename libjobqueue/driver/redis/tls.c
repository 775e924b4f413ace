/* SPDX-License-Identifier: MIT
 *
 * TLS over the connection's socket. The chain and the name of the server are verified unless that
 * is switched off. Nothing here raises SIGPIPE: OpenSSL writes through our own BIO.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "driver/redis/redis.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"

struct rds_tls {
    SSL_CTX *context;
    SSL *ssl;
    BIO_METHOD *method;
    int fd;
};

/* ---- bytes ----------------------------------------------------------------------------------- */

static int bio_write(BIO *bio, const char *p, int n)
{
    rds_tls *tls = BIO_get_data(bio);
    ssize_t sent = send(tls->fd, p, (size_t)n, MSG_NOSIGNAL);

    BIO_clear_retry_flags(bio);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_write(bio);
    return (int)sent;
}

static int bio_read(BIO *bio, char *p, int n)
{
    rds_tls *tls = BIO_get_data(bio);
    ssize_t got = recv(tls->fd, p, (size_t)n, 0);

    BIO_clear_retry_flags(bio);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_read(bio);
    return (int)got;
}

static long bio_control(BIO *bio, int what, long n, void *p)
{
    (void)bio;
    (void)n;
    (void)p;
    return what == BIO_CTRL_FLUSH;
}

static BIO *make_bio(rds_tls *tls)
{
    BIO *bio;

    tls->method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "jobqueue");
    if (!tls->method)
        return NULL;
    BIO_meth_set_write(tls->method, bio_write);
    BIO_meth_set_read(tls->method, bio_read);
    BIO_meth_set_ctrl(tls->method, bio_control);
    bio = BIO_new(tls->method);
    if (bio) {
        BIO_set_data(bio, tls);
        BIO_set_init(bio, 1);
    }
    return bio;
}

/* What OpenSSL says about the step that failed. */
static ssize_t answer(rds_tls *tls, int n, short *events)
{
    int error;

    if (n > 0)
        return n;
    error = SSL_get_error(tls->ssl, n);
    if (error == SSL_ERROR_ZERO_RETURN)
        return 0;
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
        *events = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
        errno = EAGAIN;
        return -1;
    }
    if (error == SSL_ERROR_SYSCALL && errno != 0)
        return -1;
    errno = EPROTO;
    return -1;
}

ssize_t jobq__redis_tls_write(rds_tls *tls, const void *p, size_t n, short *events_out)
{
    ERR_clear_error();
    errno = 0;
    return answer(tls, SSL_write(tls->ssl, p, n > (1 << 30) ? 1 << 30 : (int)n), events_out);
}

ssize_t jobq__redis_tls_read(rds_tls *tls, void *p, size_t n, short *events_out)
{
    ERR_clear_error();
    errno = 0;
    return answer(tls, SSL_read(tls->ssl, p, (int)n), events_out);
}

bool jobq__redis_tls_pending(rds_tls *tls)
{
    return SSL_pending(tls->ssl) > 0;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static int refuse(int code, int flags, const char *what, const char *thing)
{
    unsigned long error = ERR_get_error();
    const char *reason = error ? ERR_reason_error_string(error) : NULL;

    return jobq__error_set_driver(code, flags, "redis", (int64_t)error, "redis: %s%s%s: %s", what,
                                  thing[0] ? " " : "", thing, reason ? reason : "failed");
}

static int load_files(const jobq_driver_config *config, SSL_CTX *context)
{
    const char *key = config->key ? config->key : config->cert;
    int ok = config->ca ? SSL_CTX_load_verify_locations(context, config->ca, NULL)
                        : SSL_CTX_set_default_verify_paths(context);

    if (ok != 1)
        return refuse(JOBQ_ECONF, JOBQ__FATAL, "cannot read the certificates of ca",
                      config->ca ? config->ca : "");
    if (config->cert && SSL_CTX_use_certificate_chain_file(context, config->cert) != 1)
        return refuse(JOBQ_ECONF, JOBQ__FATAL, "cannot use the certificate", config->cert);
    if (key && (SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1 ||
                SSL_CTX_check_private_key(context) != 1))
        return refuse(JOBQ_ECONF, JOBQ__FATAL, "cannot use the key", key);
    return 0;
}

static bool expect_name(SSL *ssl, const char *host)
{
    unsigned char address[16];

    if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
    return SSL_set_tlsext_host_name(ssl, host) == 1 && SSL_set1_host(ssl, host) == 1;
}

static int set_up(const jobq_driver_config *config, const char *host, rds_tls *tls)
{
    BIO *bio;
    int rc;

    tls->context = SSL_CTX_new(TLS_client_method());
    if (!tls->context)
        return jobq__error_nomem();
    SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION);
    SSL_CTX_set_mode(tls->context,
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_verify(tls->context, config->verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
    rc = load_files(config, tls->context);
    if (rc < 0)
        return rc;
    tls->ssl = SSL_new(tls->context);
    bio = tls->ssl ? make_bio(tls) : NULL;
    if (!bio)
        return jobq__error_nomem();
    SSL_set_bio(tls->ssl, bio, bio);
    return !config->verify || expect_name(tls->ssl, host)
               ? 0
               : refuse(JOBQ_ECONF, JOBQ__FATAL, "cannot verify the name", host);
}

static int refuse_handshake(rds_tls *tls)
{
    long verdict = SSL_get_verify_result(tls->ssl);

    if (verdict != X509_V_OK)
        return jobq__error_set_driver(JOBQ_ECONF, JOBQ__FATAL, "redis", verdict,
                                      "redis: the certificate of the server is not trusted: %s "
                                      "(options: ca, verify)",
                                      X509_verify_cert_error_string(verdict));
    return refuse(JOBQ_ECONNECT, JOBQ__RETRYABLE, "the TLS handshake failed", "");
}

static int shake_hands(rds_tls *tls, int64_t deadline_ms)
{
    for (;;) {
        struct pollfd p = {.fd = tls->fd, .events = POLLIN};
        int64_t left = deadline_ms - jobq__clock_mono_ms();
        int n, rc;

        ERR_clear_error();
        errno = 0;
        n = SSL_connect(tls->ssl);
        if (n == 1)
            return 0;
        rc = (int)answer(tls, n, &p.events);
        if (rc == 0 || errno != EAGAIN)
            return refuse_handshake(tls);
        if (left <= 0 || (poll(&p, 1, (int)left) < 0 && errno != EINTR))
            return jobq__error_set_driver(JOBQ_ECONNECT, JOBQ__RETRYABLE, "redis", ETIMEDOUT,
                                          "redis: the TLS handshake did not end in time");
    }
}

int jobq__redis_tls_start(const jobq_driver_config *config, const char *host, rds_link *link,
                          int64_t deadline_ms)
{
    rds_tls *tls = jobq__zalloc(sizeof(*tls));
    int rc;

    if (!tls)
        return jobq__error_nomem();
    link->tls = tls;
    tls->fd = link->fd;
    rc = set_up(config, host, tls);
    return rc < 0 ? rc : shake_hands(tls, deadline_ms);
}

/* Without a word: a forked child ends its copy, too. */
void jobq__redis_tls_end(rds_tls *tls)
{
    if (!tls)
        return;
    SSL_free(tls->ssl);
    SSL_CTX_free(tls->context);
    BIO_meth_free(tls->method);
    jobq__free(tls);
}
