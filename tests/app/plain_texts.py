"""Texts that people bring to `product import`: 12 that are no lists of products, and 20 lists, as people write them."""

from __future__ import annotations

from textwrap import dedent


def _text(text: str) -> str:
    return dedent(text).lstrip("\n")


NO_LISTS: dict[str, str] = {
    "sites.yaml": _text("""
        engines:
          baidu:
            url: https://www.baidu.com/s?wd={query}
            rules:
              hit: div.result
              main_text: true
        sites:
          12315.com:
            groups: [complaints]
            pages: 3
          zhihu.com:
            engine: baidu
    """),
    ".env": _text("""
        # database
        REVIEWLOOP_DATABASE_URL=sqlite:///reviewloop.db
        REVIEWLOOP_TIMEZONE=Asia/Shanghai
        export DEBUG=1
        NAME=特仑苏
        EMPTY=
        TITLE="蒙牛 早餐奶"
    """),
    "app.ini": _text("""
        [server]
        host = 127.0.0.1
        port = 8000

        [client]
        ; seconds
        timeout = 30
    """),
    "pyproject.toml": _text("""
        [project]
        name = "reviewloop"
        version = "0.11.0"
        dependencies = [
            "click>=8",
            "fastapi",
        ]

        [tool.ruff]
        line-length = 110
    """),
    "products.json": _text("""
        [
          {
            "name": "特仑苏",
            "brand": "蒙牛"
          },
          {
            "name": "安慕希",
            "brand": "伊利"
          }
        ]
    """),
    "shop.py": _text('''
        """Sells milk."""
        from __future__ import annotations

        import json
        from pathlib import Path


        class Shop:
            name = "特仑苏"

            def sell(self, product: str) -> None:
                if product not in self.stock:
                    raise KeyError(product)
                self.stock[product] -= 1
                return None
    '''),
    "access.log": _text("""
        127.0.0.1 - - [28/Nov/2026:10:33:36 +0000] "GET /products HTTP/1.1" 200 5123
        127.0.0.1 - - [28/Nov/2026:10:33:37 +0000] "POST /products/preview HTTP/1.1" 200 812
        127.0.0.1 - - [28/Nov/2026:10:33:39 +0000] "POST /products HTTP/1.1" 303 0
    """),
    "page.html": _text("""
        <!DOCTYPE html>
        <html lang="zh">
        <head><title>产品</title></head>
        <body>
        <ul>
        <li>特仑苏</li>
        <li>安慕希</li>
        </ul>
        </body>
        </html>
    """),
    "news.txt": _text("""
        光明乳业召回一批高钙牛奶
        11月28日，光明乳业发布公告，宣布召回一批高钙牛奶。公司表示，这批产品在运输过程中温度过高，可能影响口感。
        消费者可以凭小票到购买的门店退款，也可以拨打客服电话咨询。
        业内人士认为，此次召回对公司全年业绩影响有限，但品牌声誉会受到一定冲击。
    """),
    "dump.sql": _text("""
        CREATE TABLE products (
            id INTEGER PRIMARY KEY,
            name TEXT NOT NULL,
            product TEXT
        );
        INSERT INTO products (id, name, product) VALUES
            (1, '特仑苏', '牛奶'),
            (2, '安慕希', '酸奶');
        SELECT name FROM products WHERE id = 1;
    """),
    "README.md": _text("""
        # Dairy shop

        A small shop that sells milk, see the [guide](docs/guide.md) for how to use it.

        ## Install

        ```
        pip install dairy-shop
        ```

        - **Fast**: a page is shown in 20 ms
        - Works without a database, so there is nothing to set up first.

        | what | how much |
        |---|---|
        | milk | 3 |
    """),
    "style.css": _text("""
        body {
          margin: 0;
          color: #333;
        }
        .product .name {
          font-weight: bold;
        }
        @media print {
          nav { display: none; }
        }
    """),
}

_NAMES = ["特仑苏", "光明高钙牛奶", "蒙牛早餐奶", "安慕希酸奶"]
_ENGLISH = [
    "Coca-Cola Zero Sugar",
    "The North Face Nuptse Jacket",
    "Head & Shoulders Classic Clean",
    "Ben & Jerry's Cookie Dough",
    "L'Oréal Paris Revitalift",
    "Assassin's Creed: Valhalla",
    "Dr. Martens 1460",
    "Bose QuietComfort Ultra Headphones",
]
_MODELS = [
    "WH-1000XM5",
    "DCS-8000LH",
    "RTX 4090",
    "ThinkPad X1 Carbon Gen 12",
    "MX Master 3S",
    "i5-13600K",
    "7-Up",
]
_PHONES = ["AirPods Pro (第2代)", "iPhone 15 Pro Max(256GB)", "小米14 Ultra", "华为Mate60 Pro+", "iPad(M4)"]
_THOUSANDS = [f"{brand}{kind}{number}号" for brand in ["光明", "蒙牛", "伊利", "三元", "君乐宝"] for kind in
              ["酸奶", "牛奶", "奶粉", "奶酪"] for number in range(1, 251)]  # fmt: skip


def _lines(names: list[str], end: str = "\n") -> str:
    return "".join(name + end for name in names)


LISTS: dict[str, tuple[str | bytes, list[str]]] = {
    "chinese.txt": (_lines(_NAMES), _NAMES),
    "english.txt": (_lines(_ENGLISH), _ENGLISH),
    "models.txt": (_lines(_MODELS), _MODELS),
    "phones.txt": (_lines(_PHONES), _PHONES),
    "brands-and-kinds.txt": (
        "美的: 空调\n格力: 空调\n海尔：冰箱\n小米: 电视\n",
        ["美的: 空调", "格力: 空调", "海尔：冰箱", "小米: 电视"],
    ),
    "english-brands.txt": (
        "Sony: WH-1000XM5\nApple: AirPods Pro\nBose: QuietComfort 45\n",
        ["Sony: WH-1000XM5", "Apple: AirPods Pro", "Bose: QuietComfort 45"],
    ),
    "numbered.txt": ("".join(f"{n}. {name}\n" for n, name in enumerate(_NAMES, 1)), _NAMES),
    "numbered-chinese.txt": ("".join(f"{n}、{name}\n" for n, name in enumerate(_NAMES, 1)), _NAMES),
    "numbered-brackets.txt": ("".join(f"({n}) {name}\n" for n, name in enumerate(_NAMES, 1)), _NAMES),
    "numbered-tab.txt": ("".join(f"{n}\t{name}\n" for n, name in enumerate(_NAMES, 1)), _NAMES),
    "bullets.txt": ("".join(f"- {name}\n" for name in _NAMES), _NAMES),
    "dots.txt": ("".join(f"•{name}\n" for name in _NAMES), _NAMES),
    "one.txt": ("特仑苏", ["特仑苏"]),
    "one-english.txt": ("Nintendo Switch 2\n", ["Nintendo Switch 2"]),
    "thousands.txt": (_lines(_THOUSANDS), _THOUSANDS),
    "gbk.txt": (_lines(_NAMES, "\r\n").encode("gbk"), _NAMES),
    "utf-16.txt": (_lines(_NAMES, "\r\n").encode("utf-16"), _NAMES),
    "with-comments.md": (
        "# 奶制品\n\n- 特仑苏\n- 安慕希酸奶\n\n# 饮料\n\n- 农夫山泉\n",
        ["特仑苏", "安慕希酸奶", "农夫山泉"],
    ),
    "trailing-commas.txt": ("特仑苏，\n安慕希酸奶，\n农夫山泉，\n", ["特仑苏", "安慕希酸奶", "农夫山泉"]),
    "with-a-header.txt": ("商品名称\n特仑苏\n安慕希酸奶\n", ["特仑苏", "安慕希酸奶"]),
}
"""The content of a file, and the names that it lists."""


# Written after the rule was done, and tried once.
LATER_NO_LISTS: dict[str, str] = {
    "docker-compose.yml": _text("""
        services:
          web:
            image: nginx:1.27
            ports:
              - "80:80"
            restart: unless-stopped
          db:
            image: postgres:16
        volumes:
          data:
    """),
    "package.json": '{"name": "shop", "version": "1.0.0", "scripts": {"test": "jest"}, "license": "MIT"}\n',
    "events.jsonl": _text("""
        {"product": "特仑苏", "stars": 5}
        {"product": "安慕希", "stars": 4}
    """),
    "application.properties": _text("""
        spring.datasource.url=jdbc:mysql://localhost:3306/shop
        spring.datasource.username=root
        server.port=8080
        shop.title=我的小店
    """),
    "main.go": _text("""
        package main

        import "fmt"

        type Product struct {
        \tName  string
        \tPrice float64
        }

        func main() {
        \tp := Product{Name: "特仑苏", Price: 59.9}
        \tfmt.Println(p.Name)
        }
    """),
    "app.log": _text("""
        2026-11-28 10:33:36,120 INFO reviewloop.run: node n1 began
        2026-11-28 10:33:37,004 WARNING reviewloop.fetching: host a.cn rests
        Traceback (most recent call last):
          File "app.py", line 3, in <module>
            main()
        ValueError: no product
    """),
    "letter.txt": _text("""
        Dear team,
        please find below what we have learned from our customers this week.
        Most of them are happy with the milk, but some say that it is too sweet.
        We should talk about it on Monday, when everybody is back in the office.
        Kind regards
        Li
    """),
    "chat.txt": _text("""
        小王：你们看到昨天的新闻了吗？
        小李：看到了，牛奶又出问题了，我家孩子天天喝的就是那个牌子。
        小王：那还是先别喝了吧，等官方的结果出来再说。
        小李：是啊，我已经把剩下的都退了。
    """),
    "prices.csv": "2026-01-02,10.5,11.2,10.1\n2026-01-05,11.2,11.9,11.0\n2026-01-06,11.9,11.4,11.1\n",
    "nginx.conf": _text("""
        server {
            listen 80;
            server_name shop.cn;
            location / {
                proxy_pass http://127.0.0.1:8000;
            }
        }
    """),
    "deploy.sh": _text("""
        #!/bin/bash
        set -eu
        cd /srv/shop
        git pull
        if [ -f .env ]; then
            source .env
        fi
        docker compose up -d --build
        echo "done"
    """),
    "feed.xml": _text("""
        <?xml version="1.0" encoding="UTF-8"?>
        <products>
          <product id="1"><name>特仑苏</name></product>
          <product id="2"><name>安慕希</name></product>
        </products>
    """),
}
_MORE = [
    "元气森林 白桃味气泡水",
    "三只松鼠每日坚果750g",
    "戴森V12 Detect Slim",
    "追觅X50 Pro增强版",
    "可口可乐",
]
_FILMS = ["我不是药神", "你好，李焕英", "让子弹飞", "大鱼海棠", "这个杀手不太冷", "阿凡达：水之道"]
_GAMES = [
    "王者荣耀",
    "原神",
    "黑神话：悟空",
    "Don't Starve: Pocket Edition",
    "Baldur's Gate 3",
    "fate/grand order",
]
_SHOPS = ["海底捞(中关村店)", "7-11", "M Stand（国贸店）", "沪上阿姨", "N多寿司", "85度C"]
_APPS = ["Node.js", "C++ Primer 第5版", "Microsoft 365", "QQ音乐", "12306", "WPS Office"]
_CARS = ["比亚迪 汉EV", "奔驰 C260L", "Model Y 长续航版", "AITO 问界M9", "MG4 EV", "理想L9"]
_COSMETICS = [
    "SK-II 神仙水",
    "La Roche-Posay B5修复霜",
    "Estée Lauder 小棕瓶",
    "i.d. 乳液",
    "3CE #22 口红",
    "HR黑绷带",
]
_LONG = [
    "蒙牛特仑苏纯牛奶250ml*16盒 每100ml含3.6g优质乳蛋白 年货礼盒装",
    "【官方旗舰店】小米米家空气净化器4 Lite 家用除甲醛 除菌 除异味",
    "Sony WH-1000XM5 Wireless Noise Canceling Headphones with Auto Noise Optimizer",
]
LATER_LISTS: dict[str, tuple[str | bytes, list[str]]] = {
    "more.txt": (_lines(_MORE), _MORE),
    "films.txt": (_lines(_FILMS), _FILMS),
    "games.txt": (_lines(_GAMES), _GAMES),
    "shops.txt": (_lines(_SHOPS), _SHOPS),
    "apps.txt": (
        _lines([name for name in _APPS if name != "12306"]),
        [name for name in _APPS if name != "12306"],
    ),
    "cars.txt": (_lines(_CARS), _CARS),
    "cosmetics.txt": (_lines(_COSMETICS), _COSMETICS),
    "long-titles.txt": (_lines(_LONG), _LONG),
    "circled.txt": ("".join(f"{chr(ord('①') + n)}{name}\n" for n, name in enumerate(_MORE)), _MORE),
    "numbered-dot-tab.txt": ("".join(f"{n}.\t{name}\n" for n, name in enumerate(_MORE, 1)), _MORE),
    "numbered-blank.txt": ("".join(f"{n:02} {name}\n" for n, name in enumerate(_CARS, 1)), _CARS),
    "numbered-sections.txt": (
        "饮料\n1. 可口可乐\n2. 元气森林\n汽车\n1. 比亚迪 汉EV\n2. 理想L9\n",
        ["饮料", "可口可乐", "元气森林", "汽车", "比亚迪 汉EV", "理想L9"],
    ),
    "stars.txt": ("".join(f"* {name}\n" for name in _GAMES), _GAMES),
    "boxes.txt": ("".join(f"- [ ] {name}\n" for name in _SHOPS), _SHOPS),
    "quoted.txt": ("".join(f'"{name}"\n' for name in _MORE), _MORE),
    "blank-lines.txt": ("\n\n".join(_FILMS), _FILMS),
    "with-a-total.txt": (_lines([*_CARS, "合计：6款"]), _CARS),
    "semicolons.txt": (_lines(_SHOPS, "；\n"), _SHOPS),
    "gb18030-windows.txt": (_lines(_COSMETICS, "\r\n").encode("gb18030"), _COSMETICS),
    "one-model.txt": ("AirPods Pro (第2代)", ["AirPods Pro (第2代)"]),
}
