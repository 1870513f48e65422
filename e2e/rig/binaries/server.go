package binaries

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"
)

// BuildVariable names the environment variable that says where Kubernetes' programs come from:
// "source" has them built. Without it they are fetched from the release server of Kubernetes if
// that can be reached.
const BuildVariable = "RIG_BUILD"

// fromSource is the one value of BuildVariable.
const fromSource = "source"

const (
	releaseServer = "https://dl.k8s.io"
	// patience is how long a checksum may take, and so how long a server that can't be reached
	// delays a build, once.
	patience = 2 * time.Second
	// stall is how long a download may stand still.
	stall = 10 * time.Second
	// longest is how long a download may take: by then the program could have been built.
	longest = 5 * time.Minute
	// checksumSize is how much of a checksum file is read, programSize how much of a program.
	checksumSize = 1 << 10
	programSize  = 1 << 30
)

// official is the server for all clusters of this process.
var official = newServer(releaseServer)

// chosenServer is the server that programs are fetched from: none if the environment says so.
func chosenServer() (*server, error) {
	switch v := os.Getenv(BuildVariable); v {
	case "":
		return official, nil
	case fromSource:
		return nil, nil
	default:
		return nil, fmt.Errorf("%s=%s is unknown: set it to %q to build Kubernetes from source, or unset it to fetch its programs where that can be done",
			BuildVariable, v, fromSource)
	}
}

// server has the programs of each Kubernetes release, and their checksums beside them. After the
// first thing that goes wrong it isn't asked again by this process.
type server struct {
	url             string
	client          *http.Client
	patience, stall time.Duration

	mu     sync.Mutex
	failed bool
}

func newServer(url string) *server {
	return &server{
		url: url, patience: patience, stall: stall,
		client: &http.Client{CheckRedirect: staysSecure},
	}
}

// staysSecure lets the server redirect to another host, as it does, but not out of TLS.
func staysSecure(next *http.Request, before []*http.Request) error {
	if len(before) > 5 {
		return errors.New("more than 5 redirects")
	}
	if before[0].URL.Scheme == "https" && next.URL.Scheme != "https" {
		return fmt.Errorf("redirected to %s, which isn't https", next.URL.Redacted())
	}
	return nil
}

func (s *server) usable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.failed
}

// fetch writes a program of a Kubernetes version to a file. What it leaves there after an error is
// not to be used.
func (s *server) fetch(ctx context.Context, version, name, file string) (err error) {
	defer func() {
		if err != nil {
			s.mu.Lock()
			s.failed = true
			s.mu.Unlock()
		}
	}()
	url := fmt.Sprintf("%s/release/%s/bin/%s/%s/%s", s.url, version, runtime.GOOS, runtime.GOARCH, name)
	want, err := s.checksum(ctx, url+".sha256")
	if err != nil {
		return err
	}
	got, err := s.download(ctx, url, file)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("%s has the wrong checksum: SHA-256 %s, want %s", url, got, want)
	}
	return nil
}

// checksum reads the file beside a program: a SHA-256 in hexadecimal.
func (s *server) checksum(ctx context.Context, url string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.patience, fmt.Errorf("no answer within %s", s.patience))
	defer cancel()
	var text []byte
	err := s.get(ctx, url, func(body io.Reader) (err error) {
		text, err = io.ReadAll(io.LimitReader(body, checksumSize))
		return err
	})
	if err != nil {
		return "", err
	}
	sum := strings.TrimSpace(string(text))
	if raw, err := hex.DecodeString(sum); err != nil || len(raw) != sha256.Size {
		return "", fmt.Errorf("%s is no SHA-256", url)
	}
	return strings.ToLower(sum), nil
}

// download writes what is at a URL to an executable file, and returns its SHA-256.
func (s *server) download(ctx context.Context, url, file string) (sum string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, longest, fmt.Errorf("not complete within %s", longest))
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	watchdog := time.AfterFunc(s.stall, func() { stop(fmt.Errorf("no data for %s", s.stall)) })
	defer watchdog.Stop()
	out, err := os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	hash := sha256.New()
	progress := writerFunc(func(p []byte) (int, error) {
		watchdog.Reset(s.stall)
		return len(p), nil
	})
	err = s.get(ctx, url, func(body io.Reader) error {
		_, err := io.Copy(io.MultiWriter(out, hash, progress), io.LimitReader(body, programSize))
		return err
	})
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// get has the body of an answer read.
func (s *server) get(ctx context.Context, url string, read func(body io.Reader) error) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return because(ctx, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	if err := read(response.Body); err != nil {
		return fmt.Errorf("%s: %w", url, because(ctx, err))
	}
	return nil
}

// because returns why a context has ended, if it has, else the error.
func because(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
