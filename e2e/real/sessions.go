package real

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// served has a server, and a process that says what it hears until its input ends.
const served = `
apiVersion: batch/v1
kind: Job
metadata:
  name: served-WORKER
  annotations: {jobferry.dev/cluster-selector: name=WORKER}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: docker.io/library/busybox:1.36
        stdin: true
        stdinOnce: true
        command: [sh, -c, 'mkdir /www; httpd -p 8080 -h /www; while read line; do echo "heard $line"; done']
`

// sessions uses a Job from the hub by the plugin.
func (s *Story) sessions(ctx context.Context) error {
	return s.inBoth(ctx, "kubectl jobferry cp, port-forward and attach", func(ctx context.Context, worker string) error {
		job := "served-" + worker
		if err := s.start(ctx, served, worker, job); err != nil {
			return err
		}
		return errors.Join(s.use(ctx, "kubectl jobferry", job), s.all("kubectl wait --timeout=2m --for=condition=complete job/"+job)(ctx))
	})
}

// use copies a file into the container of a Job or a Pod, gets it by a port that is forwarded,
// copies it back, and talks to the container's process.
func (s *Story) use(ctx context.Context, kubectl, target string) error {
	page, copied := filepath.Join(s.materials.Dir, target+".html"), filepath.Join(s.materials.Dir, target+"-copied.html")
	content := "a page for " + target
	if err := os.WriteFile(page, []byte(content), 0o600); err != nil {
		return err
	}
	if err := s.all(kubectl+" cp "+page+" "+target+":/www/", kubectl+" exec "+target+" -- chmod 644 /www/"+filepath.Base(page),
		kubectl+" cp "+target+":/www/"+filepath.Base(page)+" "+copied)(ctx); err != nil {
		return err
	}
	back, err := os.ReadFile(copied)
	if err == nil && string(back) != content {
		err = fmt.Errorf("cp brings back %q", back)
	}
	if err := errors.Join(err, s.forwarded(ctx, kubectl+" port-forward "+target, filepath.Base(page), content)); err != nil {
		return err
	}
	out, err := s.run(ctx, "hello\n", strings.Fields(kubectl+" attach "+target+" -i -q")...)
	if err == nil && !strings.Contains(out, "heard hello") {
		err = fmt.Errorf("attach: %q", out)
	}
	return err
}

// forwarded gets a page of the server in a Job's Pod by a port of this machine, which a command
// forwards.
func (s *Story) forwarded(ctx context.Context, command, page, want string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.program("kubectl"), append(strings.Fields(command)[1:], ":8080", "--address", "127.0.0.1")...)
	cmd.Env = s.environment()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() { cancel(); _ = cmd.Wait() }() // it's killed
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("port-forward: %w", err)
	}
	address, _, _ := strings.Cut(strings.TrimPrefix(line, "Forwarding from "), " ")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/"+page, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err == nil && string(content) != want {
		err = fmt.Errorf("port-forward: %d %q", answer.StatusCode, content)
	}
	return err
}
