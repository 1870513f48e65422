package binaries

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/jobferry/jobferry/e2e/checkout"
)

// Program is a main package of this repository that runs beside us, built from the packages of a
// Kubernetes release, since a process has one version of each package. To each JSON value on its
// standard input it answers with one on its standard output, and it exits at the end of its input.
type Program struct {
	process *exec.Cmd
	input   io.Closer
	lock    sync.Mutex // is held from a request to its answer
	send    *json.Encoder
	receive *json.Decoder
}

// StartOwn builds the main package in a folder below e2e, such as "reflect/apiserver", if its
// source has changed, and runs it. The program ends with the context, if not before.
func StartOwn(ctx context.Context, release Release, folder string, args ...string) (*Program, error) {
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	target := filepath.Join(cache, filepath.Dir(folder), string(release), filepath.Base(folder))
	if err := BuildOwn(ctx, release, checkout.Path("e2e", folder), target); err != nil {
		return nil, err
	}
	p := &Program{process: exec.CommandContext(ctx, target, args...)}
	p.process.Stderr = os.Stderr
	in, err := p.process.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.input, p.send, p.receive = in, json.NewEncoder(in), json.NewDecoder(out)
	return p, p.process.Start()
}

// Ask sends a request, and waits for its answer.
func (p *Program) Ask(request, answer any) error {
	p.lock.Lock()
	defer p.lock.Unlock()
	return errors.Join(p.send.Encode(request), p.receive.Decode(answer))
}

// Stop ends the program, and returns how it ended if that wasn't well.
func (p *Program) Stop() error { return errors.Join(p.input.Close(), p.process.Wait()) }
