package plugin

import (
	"io"
	"net/url"
	"strings"
	"testing"

	"net/http"
)

// A container that never ends its line: what is held of it is bounded.
func TestEndlessLines(t *testing.T) {
	h := newHub(t)
	h.answers[subPath+"log"] = func(url.Values) string { return strings.Repeat("x", 3*maxLine) + "\nlast\n" }
	said := h.run("logs", "shards", "--prefix", "--index", "0")
	lines := strings.Split(strings.TrimSuffix(said.out, "\n"), "\n")
	if said.code != 0 || len(lines) != 5 || !strings.HasSuffix(lines[4], "] last") {
		t.Fatalf("code %d, %d lines: %.200s", said.code, len(lines), said.err)
	}
	for _, line := range lines {
		if len(line) > maxLine+100 || line[0] != '[' {
			t.Errorf("a line of %d bytes: %.50s", len(line), line)
		}
	}
}

// A worker's API server that never ends an answer.
func TestEndlessAnswers(t *testing.T) {
	h := newHub(t)
	h.answers[subPath+"pods"] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"items":[`)
		forever(w)
	})
	if said := h.run("pods", "shards"); said.code != exitFailed || !strings.Contains(said.err, "larger than 64 MiB") {
		t.Errorf("code %d: %.200s", said.code, said.err)
	}
}
