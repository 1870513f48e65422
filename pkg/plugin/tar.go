package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	utilexec "k8s.io/client-go/util/exec"
	"k8s.io/kubectl/pkg/cmd/exec"

	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/archive"
	"github.com/jobferry/jobferry/pkg/util/text"
)

const (
	// maxMembers bounds the files of one copy.
	maxMembers = 1_000_000
	// maxTrailer bounds what follows an archive: tar fills its last record with zeros.
	maxTrailer = 1 << 20
	// maxComplaints bounds what is kept of the standard error of tar.
	maxComplaints = 4 << 10
)

// remoteTar is the command tar in a container of a Job's Pod.
type remoteTar struct {
	subresources *access.Subresources
	choice       access.PodChoice
	container    string
}

// download copies a file or directory of the container, of at most limit bytes.
func (t remoteTar) download(ctx context.Context, source, local string, limit int64) (archive.Result, error) {
	base := path.Base(source)
	switch base {
	case "..":
		return archive.Result{}, fmt.Errorf("%s: name the directory", source)
	case "/":
		base = "."
	}
	target, err := targetFor(base, local)
	if err != nil {
		return archive.Result{}, err
	}
	defer target.Root.Close()
	ctx, cancel := context.WithCancel(ctx)
	reader, writer := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// never fails
		_ = writer.CloseWithError(t.run(ctx, nil, lenient{writer}, "tar", "cf", "-", "-C", path.Dir(source), "./"+base))
	}()
	defer func() {
		cancel() // whatever else the container sends
		_ = reader.Close()
		<-ended
	}()
	done, err := archive.Unpack(reader, target, archive.Limits{Bytes: limit, Members: maxMembers})
	if err == nil {
		err = drain(reader)
	}
	return done, err
}

// drain reads what follows an archive, to the end of the command.
func drain(from io.Reader) error {
	_, err := io.CopyN(io.Discard, from, maxTrailer)
	switch {
	case err == nil:
		return errors.New("the container doesn't end after the archive")
	case errors.Is(err, io.EOF):
		return nil
	default:
		return err
	}
}

// targetFor says where a copy of base goes: into a directory that is there, or under the local
// name.
func targetFor(base, local string) (archive.Target, error) {
	directory, name := filepath.Dir(local), filepath.Base(local)
	if info, err := os.Stat(local); err == nil && info.IsDir() {
		directory, name = local, base
	}
	root, err := os.OpenRoot(directory)
	return archive.Target{Root: root, From: base, To: name}, err
}

// upload copies a local file or directory into a directory of the container.
func (t remoteTar) upload(ctx context.Context, local, directory string) (done archive.Result, err error) {
	local, err = filepath.Abs(local) // "." has a name
	if err != nil {
		return done, err
	}
	if _, err := os.Stat(local); err != nil {
		return done, err
	}
	reader, writer := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		var err error
		done, err = archive.Pack(writer, local, filepath.Base(local))
		_ = writer.CloseWithError(err) // never fails
		packed <- err
	}()
	err = t.run(ctx, reader, io.Discard, "tar", "xmf", "-", "-C", directory)
	_ = reader.Close()
	if failed := <-packed; failed != nil && !errors.Is(failed, io.ErrClosedPipe) {
		err = failed // and not that tar got no whole archive
	}
	return done, err
}

// run runs a command in the container.
func (t remoteTar) run(ctx context.Context, in io.Reader, out io.Writer, command ...string) error {
	address := t.subresources.SessionURL("exec", t.choice, &corev1.PodExecOptions{
		Container: t.container, Command: command, Stdin: in != nil, Stdout: true, Stderr: true,
	})
	var complaints head
	err := (&exec.DefaultRemoteExecutor{}).ExecuteWithContext(ctx, address, t.subresources.Config, in, out, &complaints, false, nil)
	if code := (utilexec.ExitError)(nil); errors.As(err, &code) {
		// Not the plugin's exit code: that is one of a command which has said why.
		return fmt.Errorf("tar in the container: %v: %s", err, text.Clean(complaints.String(), maxComplaints)) //nolint:errorlint // see above
	}
	return sessionError("exec", err)
}

// lenient takes what nobody reads any more: the client would log an error.
type lenient struct{ *io.PipeWriter }

func (l lenient) Write(p []byte) (int, error) {
	if n, err := l.PipeWriter.Write(p); !errors.Is(err, io.ErrClosedPipe) {
		return n, err
	}
	return len(p), nil
}

// head keeps the first maxComplaints bytes.
type head struct{ bytes.Buffer }

func (h *head) Write(p []byte) (int, error) {
	_, _ = h.Buffer.Write(p[:min(len(p), maxComplaints-h.Len())]) // never fails
	return len(p), nil
}
