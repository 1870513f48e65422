package oci

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	"github.com/jobferry/jobferry/tools/release/archive"
)

// Annotations in a layout's index, by which programs name the image that they import.
const (
	refName        = "org.opencontainers.image.ref.name" // the tag
	containerdName = "io.containerd.image.name"          // the whole name
)

// Save writes an image as an OCI layout in a tar archive, under the name repository:tag.
func Save(file string, index v1.ImageIndex, repository, tag string, modified time.Time) (err error) {
	dir, err := os.MkdirTemp("", "layout-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	folder, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	names := map[string]string{refName: tag, containerdName: repository + ":" + tag}
	if err := folder.AppendIndex(index, layout.WithAnnotations(names)); err != nil {
		return err
	}
	var files []archive.File
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(os.DirFS(dir), name)
		files = append(files, archive.File{Name: name, Mode: 0o644, Data: data})
		return err
	})
	if err != nil {
		return err
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	return archive.Tar(out, files, modified)
}

// Load reads what Save has written, by way of a folder. It returns the image and its tag.
func Load(file, folder string) (v1.ImageIndex, string, error) {
	if err := unpack(file, folder); err != nil {
		return nil, "", fmt.Errorf("%s: %w", file, err)
	}
	all, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", file, err)
	}
	manifest, err := all.IndexManifest()
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", file, err)
	}
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].Annotations[refName] == "" {
		return nil, "", fmt.Errorf("%s: no layout of one image with a tag", file)
	}
	image := manifest.Manifests[0]
	index, err := all.ImageIndex(image.Digest)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", file, err)
	}
	return index, image.Annotations[refName], nil
}

// unpack writes the files of a tar archive into a folder, and none elsewhere.
func unpack(file, folder string) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	files := tar.NewReader(in)
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := write(root, header.Name, files); err != nil {
			return err
		}
	}
}

func write(root *os.Root, name string, content io.Reader) (err error) {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	out, err := root.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, content)
	return err
}
