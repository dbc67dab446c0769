/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Experiment B3 on nginx. This process starts the load generator, then becomes nginx: one process without a master, so
 * the load generator measures the process that serves. nginx listens itself: as a single process it crashes with a
 * listener that it inherits (1.22). It does not wait for the load generator, so a second child does, and stops it.
 */
#define _GNU_SOURCE
#include "io_server.h"
#include "http_certificate.h"
#include "http_text.h"
#include <signal.h>
#include <sys/stat.h>

static const char configuration[] = "daemon off;\n"
				    "master_process off;\n"
				    "pid %1$s/pid;\n"
				    "error_log %1$s/error.log;\n"
				    "events { worker_connections 12000; }\n"
				    "http {\n"
				    "  access_log off;\n"
				    "  keepalive_requests 1000000000;\n"
				    "  client_body_temp_path %1$s/body;\n"
				    "  proxy_temp_path %1$s/proxy;\n"
				    "  fastcgi_temp_path %1$s/fastcgi;\n"
				    "  uwsgi_temp_path %1$s/uwsgi;\n"
				    "  scgi_temp_path %1$s/scgi;\n"
				    "  server {\n"
				    "    listen 127.0.0.1:%2$d backlog=4096%4$s;\n"
				    "    %5$sssl_protocols TLSv1.2 TLSv1.3;\n"
				    "    %5$sssl_certificate %1$s/certificate.pem;\n"
				    "    %5$sssl_certificate_key %1$s/key.pem;\n"
				    "    location / { default_type text/plain; return 200 \"%3$s\"; }\n"
				    "  }\n"
				    "}\n";

/* `how`: words that follow the listener's address. */
static void write_configuration(const char *folder, int port, const char *how, bool secure)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "%s/nginx.conf", folder);
	file = fopen(path, "w");
	io_must(file && fprintf(file, configuration, folder, port, http_body, how, secure ? "" : "# ") > 0 &&
		    !fclose(file),
		path);
}

/* The pipe `alive` reaches its end when the load generator, which holds its other end, has ended. */
static void stop_afterwards(int alive, const char *folder)
{
	pid_t server = getppid();
	char byte;

	while (read(alive, &byte, 1) < 0 && errno == EINTR)
		;
	kill(server, SIGQUIT);
	execlp("rm", "rm", "-rf", "--", folder, NULL);
	lab_die("rm");
}

int main(int argc, char **argv)
{
	char folder[] = "/tmp/weft-lab-XXXXXX", path[64];
	bool secure = lab_number(argc, argv, "tls", 0), multiplexed = lab_is(argc, argv, "case", "multiplexed");
	int port = io_free_port(), alive[2];

	io_raise_limit();
	io_must(mkdtemp(folder) && !pipe(alive), folder);
	if (secure)
		http_make_certificate(folder);
	write_configuration(folder, port, secure ? " ssl" : multiplexed ? " http2" : "", secure);
	if (!fork()) {
		close(alive[0]);
		io_await_listener(port);
		io_become_load(argc, argv, io_load_arguments(argc, argv, port));
	}
	close(alive[1]);
	if (!fork())
		stop_afterwards(alive[0], folder);
	snprintf(path, sizeof(path), "%s/nginx.conf", folder);
	execlp("nginx", "nginx", "-p", folder, "-c", path, NULL);
	lab_die("nginx");
}
