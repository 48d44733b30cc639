package kvant.bench;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import one.nio.http.HttpServer;
import one.nio.http.HttpServerConfig;
import one.nio.http.HttpSession;
import one.nio.http.Request;
import one.nio.http.Response;
import one.nio.server.AcceptorConfig;
import org.iq80.leveldb.DB;
import org.iq80.leveldb.Options;
import org.iq80.leveldb.impl.Iq80DBFactory;

/**
 * The Java peer: an HTTP server on one-nio in front of LevelDB's Java port, with default options, no fsync on writes and every
 * call made on the selector thread that read the request: the cheapest arrangement, and with one thread the cheapest for one core.
 */
public final class OneNioLevelDb extends HttpServer {
    private final DB db;

    private OneNioLevelDb(HttpServerConfig config, DB db) throws IOException {
        super(config);
        this.db = db;
    }

    @Override
    public void handleRequest(Request request, HttpSession session) throws IOException {
        switch (request.getPath()) {
            case "/v0/entity" -> session.sendResponse(entity(request));
            case "/v0/status" -> session.sendResponse(new Response(Response.OK, Response.EMPTY));
            default -> session.sendResponse(new Response(Response.BAD_REQUEST, Response.EMPTY));
        }
    }

    private Response entity(Request request) {
        String id = request.getParameter("id=");
        if (id == null || id.isEmpty()) {
            return new Response(Response.BAD_REQUEST, Response.EMPTY);
        }
        byte[] key = id.getBytes(StandardCharsets.UTF_8);
        switch (request.getMethod()) {
            case Request.METHOD_GET -> {
                byte[] value = db.get(key);
                return value == null ? new Response(Response.NOT_FOUND, Response.EMPTY) : Response.ok(value);
            }
            case Request.METHOD_PUT -> {
                byte[] body = request.getBody();
                db.put(key, body == null ? Response.EMPTY : body);
                return new Response(Response.CREATED, Response.EMPTY);
            }
            case Request.METHOD_DELETE -> {
                db.delete(key);
                return new Response(Response.ACCEPTED, Response.EMPTY);
            }
            default -> {
                return new Response(Response.METHOD_NOT_ALLOWED, Response.EMPTY);
            }
        }
    }

    /** Arguments: port, data directory, selector threads. */
    public static void main(String[] args) throws IOException {
        AcceptorConfig acceptor = new AcceptorConfig();
        acceptor.address = "127.0.0.1";
        acceptor.port = Integer.parseInt(args[0]);
        HttpServerConfig config = new HttpServerConfig();
        config.acceptors = new AcceptorConfig[] {acceptor};
        config.selectors = Integer.parseInt(args[2]);
        DB db = Iq80DBFactory.factory.open(new File(args[1]), new Options());
        new OneNioLevelDb(config, db).start();
    }
}
