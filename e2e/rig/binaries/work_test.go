package binaries

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// content is a program as the server has it; the one that is built prints something else.
const content = "#!/bin/sh\necho fetched\n"

const mainFile = `package main

import "os"

func main() { os.Stdout.WriteString("built\n") }
`

// newWork is the work for a program whose source is at hand, with an empty cache.
func newWork(t *testing.T, source string, s *server) work {
	t.Helper()
	dir := t.TempDir()
	for file, content := range map[string]string{"go.mod": "module m\n\ngo 1.26\n", "go.sum": "", "main.go": source} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m, err := loadModule(filepath.Dir(dir), filepath.Base(dir), "go1")
	if err != nil {
		t.Fatal(err)
	}
	m.kube = "v1.99.1"
	return work{program{"prog", "m", ".", true}, m, t.TempDir(), s, Progress{Program: "prog", Number: 1, Of: 1}}
}

// run has the program made, and returns what it prints and what was reported.
func (w work) run(t *testing.T) (prints string, reported []string) {
	t.Helper()
	file, err := w.ensure(t.Context(), func(p Progress) {
		line := string(p.Phase)
		if p.Note != "" {
			line += ": " + p.Note
		}
		if !slices.Contains(reported, line) {
			reported = append(reported, line)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), file).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out)), reported
}

// A package that doesn't build fails with the compiler's words, and leaves nothing in the cache.
func TestFailedBuild(t *testing.T) {
	w := newWork(t, "package main\n\nfunc main() { undefinedName() }\n", nil)
	_, err := w.ensure(t.Context(), func(p Progress) {
		if p.Phase.Ended() {
			t.Errorf("reported: %s", p)
		}
	})
	if err == nil || !strings.Contains(err.Error(), "undefinedName") {
		t.Errorf("the error is %v, want the compiler's", err)
	}
	w.expectCached(t)
}

// expectCached checks which files the cache has, besides locks.
func (w work) expectCached(t *testing.T, want ...string) {
	t.Helper()
	got, err := filepath.Glob(filepath.Join(w.cache, "*", "*"))
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("the cache has %v (error %v), want %v", got, err, want)
	}
}

// answers of servers.
type answers struct {
	checksum, program http.HandlerFunc
}

func text(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(s)) }
}

func checksumOf(s string) http.HandlerFunc {
	sum := sha256.Sum256([]byte(s))
	return text(hex.EncodeToString(sum[:]) + "\n")
}

// hang answers with the start of the program, and then nothing until the client has gone.
func hang(start string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if start != "" {
			_, _ = w.Write([]byte(start))
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	}
}

// cutOff ends the connection in the middle of the program.
func cutOff(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	_, _ = w.Write([]byte(content))
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// requests are what a server was asked.
type requests struct {
	mu    sync.Mutex
	paths []string
}

func (r *requests) add(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.paths = append(r.paths, path)
}

func (r *requests) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.paths)
}

// serve starts a release server that gives these answers.
func serve(t *testing.T, a answers) (*server, *requests) {
	t.Helper()
	asked := &requests{}
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.add(r.URL.Path)
		if path.Ext(r.URL.Path) == ".sha256" {
			a.checksum(w, r)
		} else {
			a.program(w, r)
		}
	}))
	t.Cleanup(listener.Close)
	return newServer(listener.URL), asked
}

func TestFetched(t *testing.T) {
	s, asked := serve(t, answers{checksumOf(content), text(content)})
	w := newWork(t, mainFile, s)
	prints, reported := w.run(t)
	if want := []string{string(Waiting), string(Fetching), string(Fetched) + ": from " + s.url + ", its checksum verified"}; prints != "fetched" || !slices.Equal(reported, want) {
		t.Errorf("prints %q, reported %q; want %q", prints, reported, want)
	}
	w.expectCached(t, w.fetched())
	if got := asked.list(); len(got) != 2 || !strings.HasPrefix(got[0], "/release/v1.99.1/bin/") || got[0] != got[1]+".sha256" {
		t.Errorf("asked %q", got)
	}
	if prints, reported := w.run(t); prints != "fetched" || len(reported) != 0 || len(asked.list()) != 2 {
		t.Errorf("the second time prints %q, reported %q, asked %q", prints, reported, asked.list())
	}
	w.server = nil
	if prints, _ := w.run(t); prints != "built" {
		t.Errorf("without a server prints %q", prints)
	}
}

// Whatever is wrong with the server, the program is built, the reason is told, and the server isn't
// asked again.
func TestBuiltWhereItCannotBeFetched(t *testing.T) {
	const short = 100 * time.Millisecond
	for name, row := range map[string]struct {
		answers         answers
		patience, stall time.Duration
		note            string
	}{
		"not there":                 {answers{http.NotFound, http.NotFound}, patience, stall, "404 Not Found"},
		"no checksum":               {answers{text("<html>"), text(content)}, patience, stall, "/prog.sha256 is no SHA-256"},
		"wrong checksum":            {answers{checksumOf("another"), text(content)}, patience, stall, "/prog has the wrong checksum: SHA-256 "},
		"no program":                {answers{checksumOf(content), http.NotFound}, patience, stall, "404 Not Found"},
		"cut off in the middle":     {answers{checksumOf(content), cutOff}, patience, stall, "unexpected EOF"},
		"hangs":                     {answers{hang(""), text(content)}, short, stall, "no answer within 100ms"},
		"hangs in the checksum":     {answers{hang("0123"), text(content)}, short, stall, "no answer within 100ms"},
		"hangs before the program":  {answers{checksumOf(content), hang("")}, patience, short, "no data for 100ms"},
		"hangs amid of the program": {answers{checksumOf(content), hang(content)}, patience, short, "no data for 100ms"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := serve(t, row.answers)
			s.patience, s.stall = row.patience, row.stall
			newWork(t, mainFile, s).expectBuilt(t, row.note)
			if s.usable() {
				t.Error("the server is still asked")
			}
		})
	}
}

// expectBuilt checks that the program is built, with a note that says why it isn't fetched.
func (w work) expectBuilt(t *testing.T, note string) {
	t.Helper()
	prints, reported := w.run(t)
	if prints != "built" || len(reported) != 4 || !strings.HasPrefix(reported[2], string(Building)+": from source, since "+w.server.url) ||
		!strings.Contains(reported[2], note) || reported[3] != string(Built) {
		t.Errorf("prints %q, reported %q, want a note %q", prints, reported, note)
	}
	w.expectCached(t, w.built())
}

// A server that can't be reached is tried once, not for each program.
func TestServerThatCannotBeReached(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	s := newServer(gone.URL)
	newWork(t, mainFile, s).expectBuilt(t, "connection refused")
	if prints, reported := newWork(t, mainFile, s).run(t); prints != "built" || slices.Contains(reported, string(Fetching)) {
		t.Errorf("the next program prints %q, reported %q", prints, reported)
	}
}

// A secure server's redirect to one that isn't secure isn't followed.
func TestRedirects(t *testing.T) {
	plain := httptest.NewServer(checksumOf(content))
	defer plain.Close()
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/elsewhere":
			checksumOf(content)(w, r)
		case "/secure":
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		default:
			http.Redirect(w, r, plain.URL, http.StatusFound)
		}
	}))
	defer secure.Close()
	s := newServer(secure.URL)
	s.client.Transport = secure.Client().Transport
	if _, err := s.checksum(t.Context(), secure.URL+"/secure"); err != nil {
		t.Error(err)
	}
	if _, err := s.checksum(t.Context(), secure.URL+"/plain"); err == nil || !strings.Contains(err.Error(), "isn't https") {
		t.Errorf("the error is %v", err)
	}
}

func TestProgramsThatNoServerHas(t *testing.T) {
	s, asked := serve(t, answers{checksumOf(content), text(content)})
	w := newWork(t, mainFile, s)
	w.released = false
	if prints, _ := w.run(t); prints != "built" || len(asked.list()) != 0 {
		t.Errorf("prints %q, asked %q", prints, asked.list())
	}
}

func TestBuildVariable(t *testing.T) {
	for value, want := range map[string]*server{"": official, "source": nil} {
		t.Setenv(BuildVariable, value)
		if got, err := chosenServer(); got != want || err != nil {
			t.Errorf("%s=%q: %v, %v", BuildVariable, value, got, err)
		}
	}
	t.Setenv(BuildVariable, "binary")
	if _, err := chosenServer(); err == nil || !strings.Contains(err.Error(), `RIG_BUILD=binary is unknown: set it to "source"`) {
		t.Errorf("the error is %v", err)
	}
	if official.url != "https://dl.k8s.io" || official.patience != 2*time.Second {
		t.Errorf("by default %s is tried for %s", official.url, official.patience)
	}
}

func TestClean(t *testing.T) {
	t.Setenv(CacheVariable, t.TempDir())
	cache, err := CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	program, other := filepath.Join(cache, "rig", "v1-0", "prog"), filepath.Join(cache, "other")
	for _, file := range []string{program, other} {
		if err := os.MkdirAll(file, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := Clean()
	if err != nil || dir != filepath.Join(cache, "rig") || exists(dir) || !exists(other) {
		t.Errorf("removed %s, error %v; another's folder is left: %t", dir, err, exists(other))
	}
}
