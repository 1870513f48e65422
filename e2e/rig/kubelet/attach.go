package kubelet

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// attacher is the process of each container: it says who it is, then what it hears.
type attacher struct{ pod *corev1.Pod }

// AttachContainer returns at the end of the input.
func (a attacher) AttachContainer(_ context.Context, _, _, container string, in io.Reader, out, _ io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize) error {
	if out == nil {
		return nil
	}
	if _, err := fmt.Fprintf(out, "attached to %s of %s\n", container, a.pod.Name); err != nil || in == nil {
		return err
	}
	_, err := io.Copy(out, in)
	return err
}

// forwarder listens on each port of each Pod: it says which one that is, then what it hears.
type forwarder struct{ pod *corev1.Pod }

// PortForward returns when the other end closes the connection.
func (f forwarder) PortForward(_ context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	if _, err := fmt.Fprintf(stream, "port %d of %s\n", port, f.pod.Name); err != nil {
		return err
	}
	_, err := io.Copy(stream, stream)
	return err
}
