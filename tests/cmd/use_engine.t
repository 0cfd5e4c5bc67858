#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# An inference engine behind HTTP: found, read twice, and what servers do otherwise.
. "$(dirname "$0")/lib.sh"
. tests/cmd/use_lib.sh

# Serves a page of vLLM whose counters grow, on a port of its own that it prints; by path, others.
cat >"$tmp/server.py" <<'END'
import gzip, http.server, re, sys, time, threading

page = open("tests/data/engines/vllm.prom").read()
asked = {}

class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def send(self, code, body=b"", **headers):
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass

    def do_GET(self):
        asked[self.path] = asked.get(self.path, 0) + 1
        if self.path == "/metrics":
            self.send(307, Location="/metrics/")
        elif self.path == "/metrics/":
            # Ten preemptions and 40 first tokens of 0.25 to 0.5 s more each time.
            n = asked[self.path]
            text = page.replace("_total{engine=\"0\",model_name=\"meta-llama/Llama-3.1-8B-Instruct\"} 118.0",
                                "_total{engine=\"0\",model_name=\"m\"} %d" % (118 + 10 * n))
            text = re.sub(r'(first_token_seconds_bucket{.*} )200\.0', r'\g<1>%d' % (200 + 40 * n), text)
            self.send(200, text.encode())
        elif self.path == "/slow":
            time.sleep(5)
            self.send(200, page.encode())
        elif self.path == "/huge":
            self.send(200, b"# xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n" * 300000)
        elif self.path == "/away":
            self.send(302, Location="http://127.0.0.2:9/metrics")
        elif self.path == "/loop":
            self.send(302, Location="/loop")
        elif self.path == "/file":
            self.send(302, Location="file:///etc/passwd")
        elif self.path == "/html":
            self.send(200, b"<html>\x1b[31mhello</html>\n")
        elif self.path == "/gzip":
            self.send(200, gzip.compress(page.encode()), **{"Content-Encoding": "gzip"})
        elif self.path == "/odd":
            self.send(200, b"vllm:num_requests_running NaN\nvllm:num_requests_waiting +Inf\n")
        elif self.path == "/broken":
            self.send(200, b"\x00\xff{{{\nvllm:num_requests_running 3\nvllm:num_requests_waiting{ 4\n")
        else:
            self.send(404)

lazy = len(sys.argv) > 1 # answers after 1.2 s, whatever is asked for
if lazy:
    Handler.do_GET = lambda self: (time.sleep(1.2), self.send(200, page.encode()))
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()
END
python3 "$tmp/server.py" >"$tmp/port" &
server=$!
until [ -s "$tmp/port" ]; do sleep 0.05; done
url=http://127.0.0.1:$(cat "$tmp/port")

# --- found by itself, through a redirection ---
measure "$tmp/engine.json" -d 1 -p $server
is "$(jq -r '.notes[] | select(test("was found at"))' "$tmp/engine.json")" \
	"vLLM was found at $url/metrics" 'found among the ports of the target'
is "$(value "$tmp/engine.json" requests_running)" 32 'running: of all engines'
is "$(value "$tmp/engine.json" requests_waiting)" 40 'waiting'
is "$(value "$tmp/engine.json" kv_cache_percent)" 93.75 'KV cache: the fullest'
near "$(value "$tmp/engine.json" preemptions_per_second)" 9 3 'preemptions: ten more in the window'
near "$(value "$tmp/engine.json" first_token_p50_ms)" 375 1 'first token: of the window alone'
near "$(value "$tmp/engine.json" first_token_p99_ms)" 497.5 1 'and its 99 %'
is "$(value "$tmp/engine.json" per_token_p50_ms)" '' 'no request in the window: no time'
is "$(verdict "$tmp/engine.json" 'KV cache')" warn 'KV cache: warn'
is "$(verdict "$tmp/engine.json" 'request queue')" warn 'the queue is longer than the batch'
is "$(jq -r '[.findings[].rule] | map(select(test("^(kv|engine)"))) | join(" ")' "$tmp/engine.json")" \
	'kv-cache-full engine-overloaded' 'both are recognised'
measure "$tmp/engine.json" -d 0.2 -p $server --no-engine
is "$(value "$tmp/engine.json" requests_running)" '' '--no-engine asks nobody'

# --- one that takes its time is named, and the command that waits for it is right ---
measure "$tmp/slow.json" -d 0.1 --engine "$url/slow" & # for later
slow=$!
python3 "$tmp/server.py" lazy >"$tmp/lazy" &
lazy=$!
until [ -s "$tmp/lazy" ]; do sleep 0.05; done
measure "$tmp/engine.json" -d 0.1 -p $lazy
next=http://127.0.0.1:$(cat "$tmp/lazy")/metrics
is "$(jq -r '.values[] | select(.resource == "engine") | .value_reason' "$tmp/engine.json")" \
	"no port of the target has metrics of an engine; port $(cat "$tmp/lazy"): no answer within 0.3 s (--engine $next waits 3 s)" \
	'a port that does not answer in time is told with what waits for it'
measure "$tmp/engine.json" -d 0.1 --engine "$next"
is "$(value "$tmp/engine.json" requests_running)" 32 'which does'
kill $lazy

# --- with a GPU: who waits for whom ---
mkdir "$tmp/lib"
cp "$W/fake_nvml" "$tmp/lib/libnvidia-ml.so.1"
export FAKE_NVML=$tmp/gpus
rules() { # BUSY ARG…
	printf 'count 1\n0.busy %d\n0.memory_gib 80\n0.used_gib 70\n' "$1" >"$FAKE_NVML"
	shift
	LD_LIBRARY_PATH=$tmp/lib "$INSPECT" use --json -d 0.5 "$@" 2>/dev/null |
		jq -r '[.findings[].rule] | join(" ")'
}
like "$(rules 12 --engine "$url/metrics")" 'gpu-starved' 'requests wait and the GPU idles: starved'
# Its own GPU idles, and one that it does not use is busy.
printf '%s\n' 'count 2' '0.busy 12' "0.process $server" '0.process_gib 70' '1.busy 99' >"$FAKE_NVML"
LD_LIBRARY_PATH=$tmp/lib measure "$tmp/engine.json" -d 0.2 -p $server
is "$(jq -r '.findings[] | select(.rule == "gpu-starved") | "\(.evidence)\n\(.next)"' "$tmp/engine.json")" \
	"request queue vLLM: 40 requests wait, GPU 12 % busy (below 50)
inspect offcpu -p $server -d 10" 'the target is starved, whatever other GPUs do'
printf 'vllm:num_requests_running 8\nvllm:num_requests_waiting 0\nvllm:kv_cache_usage_perc 0.3\n' >"$tmp/metrics"
(cd "$tmp" && exec python3 -m http.server --bind 127.0.0.1 0 2>&1) >"$tmp/quiet.log" &
until grep -q 'port ' "$tmp/quiet.log" 2>/dev/null; do sleep 0.05; done
quiet=http://127.0.0.1:$(sed -n 's/.* port \([0-9]*\).*/\1/p' "$tmp/quiet.log")/metrics
like "$(rules 98 --engine "$quiet")" 'gpu-bound' 'GPU busy with a short queue: the GPU'
unlike "$(rules 98 --engine "$quiet")" 'kv-cache-full|engine-overloaded|gpu-starved' 'and nothing else of the engine'

# --- what servers do otherwise: one reason, and everything else is measured ---
reason() { # URL
	measure "$tmp/engine.json" -d 0.1 --engine "$1"
	is "$(jq '[.resources[] | select(.resource == "CPU")] | length > 0' "$tmp/engine.json")" true 'the rest is measured' >/dev/null
	jq -r '.values[] | select(.resource == "engine") | .value_reason' "$tmp/engine.json"
}
is "$(reason "$url/nothing")" 'HTTP status 404' 'no such page'
is "$(reason "$url/away")" 'it redirects to another server' 'a redirection to another server is not followed'
is "$(reason "$url/file")" 'it redirects to another server' 'nor one to a file'
is "$(reason "$url/loop")" 'it redirects again and again' 'nor one in a circle'
is "$(reason "$url/html")" 'no metrics of an engine that is known' 'a page that is none'
like "$(reason "$url/huge")" 'larger than 16 MiB' 'a page without an end'
wait $slow
like "$(jq -r '.values[] | select(.resource == "engine") | .value_reason' "$tmp/slow.json")" '[Tt]ime' 'a server that does not answer in time'
for i in foo ftp://127.0.0.1/metrics file:///etc/passwd http:///metrics; do
	exits 2 "$i is no server" "$INSPECT" use -d 60 --engine "$i"
done
like "$(reason http://127.0.0.1:1/metrics)" "[Cc]ouldn't connect" 'nobody there'
"$INSPECT" use -d 0.1 --engine "$url/nothing" >"$tmp/out"
like "$(sed '/^$/q' "$tmp/out")" "# note: --engine $url/nothing gave nothing: HTTP status 404" \
	'who asked for an engine reads in the head that there is none'
measure "$tmp/engine.json" -d 0.1 --engine "$url/broken"
is "$(value "$tmp/engine.json" requests_running)" 3 'of a broken page the good lines are read'
like "$(jq -r '.notes[]' "$tmp/engine.json")" '^2 lines of .* are no metrics' 'and the others counted'
measure "$tmp/engine.json" -d 0.1 --engine "$url/gzip"
is "$(value "$tmp/engine.json" requests_running)" 32 'a page that is compressed without being asked for is read'
measure "$tmp/engine.json" -d 0.1 --engine "$url/odd"
is "$(jq -r '[.values[] | select(.metric | test("requests_(running|waiting)$|kv_")) | .value_reason] | join("; ")' "$tmp/engine.json")" \
	"use of the KV cache: not exported by this engine; running requests: exported, but as NaN; waiting requests: exported, but as an infinity" \
	'what has no value is there all the same'

# --- in a container: a network of its own ---
if [ "$(id -u)" = 0 ]; then
	unshare -n sh -c "ip link set lo up && exec python3 '$tmp/server.py'" >"$tmp/inner" &
	inner=$!
	until [ -s "$tmp/inner" ]; do sleep 0.05; done
	measure "$tmp/engine.json" -d 0.1 -p $inner
	is "$(jq -r '.notes[] | select(test("was found at"))' "$tmp/engine.json")" \
		"vLLM was found at http://127.0.0.1:$(cat "$tmp/inner")/metrics in the network of process $inner" \
		'found in the network of the target'
	is "$(value "$tmp/engine.json" requests_running)" 32 'and read there'
	is "$(jq -r '[.values[] | select(.resource == "disk" and .value != null)] | length > 0' "$tmp/engine.json")" true 'the rest is ours'
	chmod 755 "$tmp" && cp "$INSPECT" "$tmp/inspect"
	setpriv --reuid=65534 --regid=65534 --clear-groups "$tmp/inspect" use --json -d 0.1 -p $inner >"$tmp/engine.json"
	like "$(jq -r '.values[] | select(.resource == "engine").value_reason' "$tmp/engine.json")" \
		"^the target's descriptors are not readable for this user" 'an ordinary user cannot know its ports'
else
	skip 'enters a network namespace: needs root' 4
fi
