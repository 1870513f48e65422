package rig

import (
	"errors"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/kubernetes"

	"github.com/jobferry/jobferry/e2e/rig/reap"
)

// The steps that make everything a cluster's processes need before the first of them starts.

func (c *Cluster) makeFolder() error {
	reaper, err := reap.Shared()
	if err != nil {
		return err
	}
	c.reaper = reaper
	if c.dir, err = os.MkdirTemp("", "jobferry-rig-"+c.Name()+"-"); err != nil {
		return err
	}
	if err := c.reaper.WatchDir(c.dir); err != nil {
		return err
	}
	return c.makeLogFolder(os.Getenv(LogsVariable))
}

// makeLogFolder makes the folder of logs in one that is kept, if there is one, else in the
// cluster's own.
func (c *Cluster) makeLogFolder(kept string) (err error) {
	if kept == "" {
		c.logs = filepath.Join(c.dir, "logs")
		return os.Mkdir(c.logs, 0o755)
	}
	if kept, err = filepath.Abs(kept); err != nil {
		return err
	}
	if err := os.MkdirAll(kept, 0o755); err != nil {
		return err
	}
	c.logs, err = os.MkdirTemp(kept, c.Name()+"-")
	return err
}

func (c *Cluster) makePorts() error {
	wanted := []**port{&c.etcdPort, &c.peerPort, &c.apiPort}
	if c.options.FaultProxy {
		wanted = append(wanted, &c.proxyPort)
	}
	for _, p := range wanted {
		var err error
		if *p, err = reservePort(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) makeCredentials() (err error) {
	addresses := []net.IP{net.IPv4(127, 0, 0, 1), c.options.serviceIP().AsSlice()}
	for _, a := range c.options.Addresses {
		addresses = append(addresses, a.AsSlice())
	}
	c.credentials, err = newCredentials(c.dir, addresses)
	return err
}

func (c *Cluster) makeKubeconfigs() error {
	w := fileWriter{dir: c.dir}
	var errs []error
	write := func(file, user string, groups ...string) (path string, content []byte) {
		content, err := c.certificateKubeconfig(user, groups...)
		errs = append(errs, err)
		return w.write(file, content), content
	}
	c.adminFile, c.admin = write("kubeconfig", userAdmin, groupMasters)
	c.controllerManagerFile, _ = write("kube-controller-manager.kubeconfig", userControllerManager)
	c.schedulerFile, _ = write("kube-scheduler.kubeconfig", userScheduler)
	c.kwokKubeconfig, _ = write("kwok.kubeconfig", userKwok, groupMasters)
	if err := errors.Join(append(errs, w.err)...); err != nil {
		return err
	}
	var err error
	if c.rest, err = restConfig(c.admin); err != nil {
		return err
	}
	c.client, err = kubernetes.NewForConfig(c.rest)
	return err
}

func (c *Cluster) makeFiles() error {
	kwok, err := kwokConfiguration(c.options.Pods)
	if err != nil {
		return err
	}
	w := fileWriter{dir: c.dir}
	c.kwokFile = w.write("kwok.yaml", kwok)
	c.auditPolicyFile = w.write("audit-policy.yaml", []byte(auditPolicy))
	c.auditLog = filepath.Join(c.logs, "audit.log")
	return w.err
}

func (c *Cluster) makeProxy() (err error) {
	if !c.options.FaultProxy {
		return nil
	}
	if c.proxy, err = NewProxy(c.proxyPort.Address(), c.apiPort.Address()); err != nil {
		return err
	}
	c.proxied, err = c.ThroughProxy(c.admin)
	return err
}
