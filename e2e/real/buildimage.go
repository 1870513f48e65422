package real

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/jobferry/jobferry/e2e/real/image"
	"github.com/jobferry/jobferry/e2e/real/sandbox"
)

// BuildImageCommand is the argument by which the program, in a mount namespace of its own, builds
// Jobferry's image.
const BuildImageCommand = "build-image"

// BuildImage carries out the Dockerfile in root, and writes an archive. It's the work of the
// process that Isolated starts.
func BuildImage(ctx context.Context, root, dir, archive string) error {
	if err := sandbox.Private(); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		return err
	}
	stages, err := image.Parse(string(text))
	if err != nil {
		return fmt.Errorf("the Dockerfile: %w", err)
	}
	// An overlay over / can't have its upper folder on the file system of /.
	work := filepath.Join(dir, "stages")
	if err := os.MkdirAll(work, 0o755); err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", work, "tmpfs", 0, ""); err != nil {
		return fmt.Errorf("%s: %w", work, err)
	}
	builder, err := newBuilder(ctx, root, work)
	if err != nil {
		return err
	}
	files, err := builder.Build(ctx, stages)
	if err != nil {
		return fmt.Errorf("the Dockerfile: %w", err)
	}
	last := stages[len(stages)-1]
	return image.Image{
		Name: imageRepository + ":" + imageTag, Root: files, User: last.User, Entrypoint: last.Entrypoint,
	}.Write(archive)
}

// newBuilder has this machine's Go toolchain and caches where the golang image has them.
func newBuilder(ctx context.Context, root, work string) (*image.Builder, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "-json").Output()
	if err != nil {
		return nil, err
	}
	var env map[string]string
	if err := json.Unmarshal(out, &env); err != nil {
		return nil, err
	}
	builder := &image.Builder{
		Context: root, Work: work,
		Args: map[string]string{"TARGETOS": "linux", "TARGETARCH": runtime.GOARCH, "VERSION": imageTag},
		Toolchain: map[string]string{
			"/usr/local/go": env["GOROOT"], "/go/pkg/mod": env["GOMODCACHE"], "/root/.cache/go-build": env["GOCACHE"],
		},
		Env: []string{"PATH=/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin", "HOME=/root", "GOPATH=/go", "GOFLAGS=-buildvcs=false"},
	}
	for _, name := range []string{"GOPROXY", "GONOSUMDB", "GONOPROXY", "GOPRIVATE", "GOSUMDB", "GOINSECURE"} {
		builder.Env = append(builder.Env, name+"="+env[name])
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE"} {
		if value, set := os.LookupEnv(name); set {
			builder.Env = append(builder.Env, name+"="+value)
		}
	}
	return builder, nil
}
