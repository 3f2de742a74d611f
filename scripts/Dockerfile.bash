# A provisioner in bash: static programs of Debian and this project, and one script.
# Build context: the root of the image: provision, what it reads, and bin with bash, busybox, flex and whatever else the script needs, such as
# kubectl. hack/with-libraries.sh puts programs there that need libraries.
FROM scratch
COPY . /
RUN ["/bin/busybox", "--install", "-s", "/bin"]
ENV PATH=/bin
USER 65532:65532
ENTRYPOINT ["/provision"]
